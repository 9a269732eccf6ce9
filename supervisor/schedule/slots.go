package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

const (
	// lossWeight is how many tokens that a request can use in a slot outweigh one that is lost. Two conversations with a long
	// system prompt in common would otherwise take a slot from each other with each turn, though another one is empty.
	lossWeight = 8
	// lossHalves is how long a slot is unused until the loss of what it holds counts half as much.
	lossHalves = 10 * time.Minute
	// farMore is how many more tokens of its prompt a slot must hold for a request to wait while that slot is being saved, or
	// to prefer an instance that is busier.
	farMore = 512
	// bytesPerToken is the length of a token in a prompt that the engine hasn't counted.
	bytesPerToken = 4
)

// lost returns how many tokens are lost if a prompt follows. If the whole content's prompt is continued, its answer is part of
// the new prompt.
func (c *content) lost(prompt prefix.Chain) int {
	if c.Prompt.Common(prompt) == len(c.Prompt) {
		return 0
	}
	return c.Tokens - c.Common(prompt)
}

// candidate is a slot that a request may get.
type candidate struct {
	id      int
	foreign bool    // what it holds may be of others, and can't be used
	cost    float64 // in tokens, compared with a slot that holds nothing
	common  int     // tokens of the request that it holds
	turn    uint64
}

// candidate values a slot for a waiter. A request without a chain continues the last one of its owner without a chain.
func (b *slotBook) candidate(id int, w *Waiter, now time.Time) candidate {
	s := &b.slots[id]
	c := candidate{id: id, turn: s.turn, foreign: b.private && s.turn > 0 && !s.isOf(w.Owner)}
	lost := s.holds.Tokens
	if !c.foreign {
		c.common, lost = s.holds.Common(w.Prompt), s.holds.lost(w.Prompt)
	}
	if c.cost = -float64(c.common); lost != 0 {
		halvings := float64(max(0, now.Sub(s.used))) / float64(lossHalves)
		c.cost += lossWeight * float64(lost) * math.Exp2(-halvings)
	}
	if len(w.Prompt) == 0 && len(s.holds.Prompt) == 0 && s.turn > 0 && s.isOf(w.Owner) {
		c.cost = -1
	}
	return c
}

// compare orders candidates, the best first. Of those that cost the same, one that was never used is better, then the least
// recently used. Of those that gain something, the most recently used is better.
func (c candidate) compare(o candidate) int {
	byAge := cmp.Compare(c.turn, o.turn)
	if c.cost < 0 {
		byAge = -byAge
	}
	return cmp.Or(cmp.Compare(btoi(c.foreign), btoi(o.foreign)), cmp.Compare(c.cost, o.cost), byAge)
}

// candidates appends the slots that are accepted, with their values.
func (b *slotBook) candidates(all []candidate, w *Waiter, now time.Time, accept func(*slotState) bool) []candidate {
	for id := range b.slots {
		if accept(&b.slots[id]) {
			all = append(all, b.candidate(id, w, now))
		}
	}
	return all
}

// best returns the n best of candidates, the best first, or all of them if there are fewer. It reorders them.
func best(all []candidate, n int) []candidate {
	if n == 1 && len(all) > 0 {
		all[0] = slices.MinFunc(all, candidate.compare)
		return all[:1]
	}
	slices.SortStableFunc(all, candidate.compare)
	return all[:min(n, len(all))]
}

// choose appends the n best free slots for a waiter, or all of them if there are fewer.
func (b *slotBook) choose(to []candidate, n int, w *Waiter, now time.Time) []candidate {
	return best(b.candidates(to, w, now, (*slotState).isFree), n)
}

// awaits reports whether a waiter should wait for a slot that is being saved, since it holds far more of its prompt than any free one.
func (in *Instance) awaits(w *Waiter, now time.Time) bool {
	if w.Slots == 0 || len(w.Prompt) == 0 || in.book.saving() == 0 {
		return false
	}
	saved := best(in.book.candidates(nil, w, now, func(s *slotState) bool { return s.saving }), 1)
	free := in.book.choose(nil, 1, w, now)
	return len(free) == 0 || saved[0].compare(free[0]) < 0 && saved[0].common >= free[0].common+farMore
}

func (in *Instance) holds(w *Waiter) int {
	most := 0
	if in.book == nil || len(w.Prompt) == 0 {
		return 0
	}
	for id := range in.book.slots {
		if s := &in.book.slots[id]; s.isFree() && in.book.mayReuse(s, w) {
			most = max(most, s.holds.Common(w.Prompt))
		}
	}
	return most
}

const (
	// SaveWithin is how long an instance that leaves is kept for its slots to be saved.
	SaveWithin = 5 * time.Second
	// saveGain is how many tokens a state must have more than what is saved of it.
	saveGain = 256
)

func (st *State) saves(in *Instance) bool {
	return in.Savable && in.book != nil && st.Limits.SaveAfter > 0
}

// isWorthSaving reports whether a slot has enough that isn't saved. A state needs at least as many tokens as given.
func (s *slotState) isWorthSaving(least int) bool {
	c := &s.holds
	return s.known && !s.tried && c.measured && !c.unsaved && len(c.Prompt) > 0 && c.Tokens >= least &&
		(c.saved == 0 || c.Tokens-c.saved >= saveGain)
}

func (b *slotBook) worthSaving(least int) []int {
	var ids []int
	for id := range b.slots {
		if s := &b.slots[id]; s.isFree() && s.isWorthSaving(least) && !b.isCovered(id, least) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(x, y int) int { return candidate{turn: b.slots[y].turn}.compare(candidate{turn: b.slots[x].turn}) })
	return ids
}

// isCovered reports whether another slot that is saved has the same prompt and possibly more, as when a request has several answers.
func (b *slotBook) isCovered(id, least int) bool {
	s := &b.slots[id]
	for other := range b.slots {
		o := &b.slots[other]
		isMore := len(o.holds.Prompt) > len(s.holds.Prompt) || len(o.holds.Prompt) == len(s.holds.Prompt) && o.turn > s.turn
		if isMore && o.borrower == nil && o.isOf(s.holds.Owner) && s.holds.Prompt.Common(o.holds.Prompt) == len(s.holds.Prompt) &&
			(o.holds.saved >= s.holds.PromptTokens || o.isWorthSaving(least)) {
			return true
		}
	}
	return false
}

func (b *slotBook) saving() int {
	n := 0
	if b != nil {
		for i := range b.slots {
			n += btoi(b.slots[i].saving)
		}
	}
	return n
}

func (s *stepper) save(in *Instance, slot int, leaving bool) {
	in.book.slots[slot].saving = true
	s.do(Save{in.Gen, slot, leaving})
}

// savesAt returns when a slot of an idle instance is saved; zero: never, or not before something else happens.
func (st *State) savesAt(in *Instance) time.Time {
	if !in.isIdle() || !st.saves(in) || in.book.saving() > 0 || len(in.book.worthSaving(st.Limits.SaveTokens)) == 0 {
		return time.Time{}
	}
	return in.LastUsed.Add(st.Limits.SaveAfter)
}

// Savable says that the states of a process's slots can be kept.
type Savable struct{ Gen uint64 }

func (ev Savable) apply(s *stepper) {
	if in := s.st.Find(ev.Gen); in != nil {
		in.Savable = true
	}
}

// Saved is the end of a Save. Each Save has one, unless the process exits. The slot isn't saved again before it has changed.
type Saved struct {
	Gen    uint64
	Slot   int
	Tokens int // that are kept now; 0: none
}

func (ev Saved) apply(s *stepper) {
	in := s.st.Find(ev.Gen)
	if in == nil || in.book == nil || ev.Slot >= len(in.book.slots) || !in.book.slots[ev.Slot].saving {
		return
	}
	slot := &in.book.slots[ev.Slot]
	if ev.Tokens > 0 && !slot.dropped {
		slot.holds.saved = ev.Tokens
	}
	slot.saving, slot.tried, slot.dropped = false, true, false
}

// Cleared says that saved states were deleted, though what they belong to is still there: it is saved again after its next request.
// Match reports whether it is true of a model's states of an owner.
type Cleared struct{ Match func(key, owner string) bool }

func (ev Cleared) apply(s *stepper) { s.st.dropSaved(false, ev.Match) }

// dropSaved forgets what is saved of the models and owners that match, since the files were deleted. A save under way may have been
// deleted with them: it doesn't count either. What slots hold now isn't saved before the next request has changed it, unless again says so.
func (st *State) dropSaved(again bool, match func(key, owner string) bool) {
	for _, in := range st.Instances {
		if in.book == nil {
			continue
		}
		for id := range in.book.slots {
			if slot := &in.book.slots[id]; match(in.Spec.Model.Key, slot.holds.Owner) {
				slot.holds.saved, slot.tried, slot.dropped = 0, !again, slot.saving
			}
		}
		for i := range in.book.displaced {
			if c := &in.book.displaced[i]; match(in.Spec.Model.Key, c.Owner) {
				c.saved = 0
			}
		}
	}
}

// Forgot says that something was deleted. States of slots that belong to it aren't kept any more, nor are those of requests that
// wait or are under way; those that were saved before are the sender's to delete. An empty field stands for anything, but not all may be.
type Forgot struct{ Owner, Conversation, Key string }

func (ev Forgot) apply(s *stepper) {
	for _, w := range s.st.Waiters {
		if w.Kind == WaitSlots && ev.Has(w.Key, w.Owner, w.Conversation) {
			w.Unsaved = true
		}
	}
	for _, in := range s.st.Instances {
		if in.book != nil {
			in.book.forget(func(owner, conversation string) bool { return ev.Has(in.Spec.Model.Key, owner, conversation) })
		}
	}
}

// Has reports whether a state of a model belongs to what was deleted.
func (ev Forgot) Has(key, owner, conversation string) bool {
	return ev != (Forgot{}) && (ev.Key == "" || ev.Key == key) && (ev.Owner == "" || ev.Owner == owner) &&
		(ev.Conversation == "" || ev.Conversation == conversation)
}
