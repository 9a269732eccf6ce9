package schedule

import (
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

const (
	// SaveWithin is how long an instance that leaves is kept for its slots to be saved.
	SaveWithin = 5 * time.Second
	// saveGain is how many tokens a state must have more than what is saved of it.
	saveGain = 256
)

// saves reports whether the states of an instance's slots are saved.
func (st *State) saves(in *Instance) bool {
	return in.Savable && in.book != nil && st.Limits.SaveAfter > 0
}

// isWorthSaving reports whether a slot has enough that isn't saved. A state needs at least as many tokens as given.
func (s *slotState) isWorthSaving(least int) bool {
	c := &s.holds
	return s.known && !s.tried && c.measured && !c.unsaved && len(c.Prompt) > 0 && c.Tokens >= least && (c.saved == 0 || c.Tokens-c.saved >= saveGain)
}

// isSavedBefore reports whether a conversation is saved before a prompt takes its slot: what has left a slot can't be saved any more. It
// must continue an earlier request, since there may be many single ones, and have grown by half since it was saved: each save writes
// all of it.
func (c *content) isSavedBefore(prompt prefix.Chain) bool {
	return c.goesOn && c.isDisplacedBy(prompt) && 2*(c.Tokens-c.saved) >= c.saved
}

// worthSaving returns the slots to save, the most recently used first.
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

// isCovered reports whether another slot that is saved has the same prompt and possibly more, as when a request has several
// answers.
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

// saving returns the number of slots that are being saved.
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

// saveAll begins to save the slots of an instance that leaves. Those of leases that have not been returned aren't saved.
func (s *stepper) saveAll(in *Instance) {
	if s.st.saves(in) {
		for _, id := range in.book.worthSaving(s.st.Limits.SaveTokens) {
			s.save(in, id, true)
		}
	}
	if in.book.saving() > 0 {
		in.SaveBy = s.now.Add(SaveWithin)
	}
}

// saveIdle saves slots of instances that were idle for long enough, one at a time for each instance.
func (s *stepper) saveIdle() {
	for _, in := range s.st.Instances {
		if at := s.st.savesAt(in); !at.IsZero() && !s.now.Before(at) {
			s.save(in, in.book.worthSaving(s.st.Limits.SaveTokens)[0], false)
		}
	}
}

// savesAt returns when a slot of an idle instance is saved; zero: never, or not before something else happens.
func (st *State) savesAt(in *Instance) time.Time {
	if !in.isIdle() || !st.saves(in) || in.book.saving() > 0 || len(in.book.worthSaving(st.Limits.SaveTokens)) == 0 {
		return time.Time{}
	}
	return in.LastUsed.Add(st.Limits.SaveAfter)
}

func (s *stepper) savable(ev Savable) {
	if in := s.st.Find(ev.Gen); in != nil {
		in.Savable = true
	}
}

// saved ends a save. The slot isn't saved again before it has changed.
func (s *stepper) saved(ev Saved) {
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

// dropSaved forgets what is saved of the models and owners that match, since the files were deleted. A save under way may have been
// deleted with them: it doesn't count either. What slots hold now isn't saved before the next request has changed it, unless again says so.
func (s *stepper) dropSaved(again bool, match func(key, owner string) bool) {
	for _, in := range s.st.Instances {
		if in.book != nil {
			in.book.dropSaved(again, func(owner string) bool { return match(in.Spec.Model.Key, owner) })
		}
	}
}

func (b *slotBook) dropSaved(again bool, isOf func(owner string) bool) {
	for id := range b.slots {
		if s := &b.slots[id]; isOf(s.holds.Owner) {
			s.holds.saved, s.tried, s.dropped = 0, !again, s.saving
		}
	}
	for i := range b.displaced {
		if isOf(b.displaced[i].Owner) {
			b.displaced[i].saved = 0
		}
	}
}

// forgot keeps what was deleted from being saved, also by requests that wait or are under way.
func (s *stepper) forgot(ev Forgot) {
	if ev == (Forgot{}) {
		return
	}
	matches := func(key, owner, conversation string) bool {
		return (ev.Key == "" || ev.Key == key) && (ev.Owner == "" || ev.Owner == owner) && (ev.Conversation == "" || ev.Conversation == conversation)
	}
	for _, w := range s.st.Waiters {
		if w.Kind == WaitSlots && matches(w.Key, w.Owner, w.Conversation) {
			w.Unsaved = true
		}
	}
	for _, in := range s.st.Instances {
		if in.book != nil {
			in.book.forget(func(owner, conversation string) bool { return matches(in.Spec.Model.Key, owner, conversation) })
		}
	}
}
