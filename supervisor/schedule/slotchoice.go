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

// Common estimates how many tokens of a prompt the content has.
func (c *Content) Common(prompt prefix.Chain) int {
	switch n := c.Prompt.Common(prompt); n {
	case 0:
		return 0
	case len(c.Prompt):
		return c.PromptTokens
	default:
		return int(int64(c.PromptTokens) * int64(c.Prompt.Weight(n)) / int64(max(1, c.Prompt.Weight(len(c.Prompt)))))
	}
}

// tokensOf estimates the tokens of a prompt: those in common, and the others by their length.
func (c *content) tokensOf(prompt prefix.Chain) int {
	rest := prompt.Weight(len(prompt)) - prompt.Weight(c.Prompt.Common(prompt))
	return c.Common(prompt) + rest/bytesPerToken
}

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

// awaits reports whether a waiter should wait for a slot that is being saved, since it holds far more of its prompt than any
// free one.
func (in *Instance) awaits(w *Waiter, now time.Time) bool {
	if w.Slots == 0 || len(w.Prompt) == 0 || in.book.saving() == 0 {
		return false
	}
	saved := best(in.book.candidates(nil, w, now, func(s *slotState) bool { return s.saving }), 1)
	free := in.book.choose(nil, 1, w, now)
	return len(free) == 0 || saved[0].compare(free[0]) < 0 && saved[0].common >= free[0].common+farMore
}

// holds returns how many tokens of a waiter's prompt the best free slot holds.
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
