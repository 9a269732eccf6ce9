package schedule

import (
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// slotBook records what each slot of an instance holds and who uses it, so that a request gets the slot that has most of its
// prompt already.
type slotBook struct {
	slots     []slotState
	displaced displaced
	recent    []prefix.Sum // the ends of the last prompts
	private   bool         // owners are isolated: what a slot holds is used for its owner only
	turn      uint64       // counts uses
}

type slotState struct {
	holds content
	known bool      // holds is all that the slot can hold; else other owners' prompts, too
	turn  uint64    // in which it was last used; 0: never
	used  time.Time // when it was last used

	saving  bool // it isn't lent meanwhile
	dropped bool // what is being saved may have been deleted already
	tried   bool // it was saved, or couldn't be, and hasn't changed since

	borrower *Waiter // to whom it is leased; nil: nobody
}

// content is what a slot holds, and what is known of it.
type content struct {
	prefix.State
	measured bool // the engine has counted its tokens, and completed the prompt; else they are estimated
	unsaved  bool // it is never saved
	saved    int  // tokens of it that are saved
	goesOn   bool // it continues an earlier request of the book
}

// Loan is a leased slot.
type Loan struct {
	Slot    int
	Reuse   bool          // what it holds may be used: it is the borrower's own, or owners aren't isolated
	Common  int           // tokens of the request that it holds, estimated
	Cached  int           // tokens of the request that the engine's prompt cache holds, estimated
	Unsaved *prefix.State // what would be lost if another state were restored into it, and is worth saving; nil: nothing is
	IsMoved bool          // unsaved is to be saved although the request itself only moves it into the engine's prompt cache, or drops it
}

func (b *slotBook) lend(n int, w *Waiter, now time.Time) {
	var few [16]candidate // enough for most instances
	for _, c := range b.choose(few[:0], n, w, now) {
		b.slots[c.id].borrower = w
	}
}

// isOf reports whether all that the slot holds is of one owner.
func (s *slotState) isOf(owner string) bool { return s.known && s.holds.Owner == owner }

// mayReuse reports whether a request may use what the slot holds.
func (b *slotBook) mayReuse(s *slotState, w *Waiter) bool { return !b.private || s.isOf(w.Owner) }

func (s *slotState) isFree() bool { return s.borrower == nil && !s.saving }

// giveBack returns a waiter's slots. Those without a Use are as they were.
func (b *slotBook) giveBack(waiter uint64, uses []Use, now time.Time) {
	for id := range b.slots {
		s := &b.slots[id]
		if s.borrower == nil || s.borrower.ID != waiter {
			continue
		}
		w := s.borrower
		s.borrower = nil
		for _, use := range uses {
			if use.Slot == id {
				b.turn++
				b.change(s, w, use)
				s.turn, s.used, s.tried = b.turn, now, false
			}
		}
	}
}

// change records what a request has made of a slot.
func (b *slotBook) change(s *slotState, w *Waiter, use Use) {
	s.holds.saved = max(s.holds.saved, use.Saved)
	switch {
	case use.Begun:
		var before content
		switch {
		case use.Restored > 0:
			before = content{State: prefix.State{Prompt: w.Prompt, PromptTokens: use.Restored, Tokens: use.Restored}, saved: use.Restored}
		case use.Emptied:
		case b.mayReuse(s, w):
			before = b.displaced.exchange(s.holds, w.Prompt)
		}
		s.holds, s.known = before.followedBy(w, use), true
		s.holds.goesOn = b.continues(w.Prompt)
	case use.Restored > 0, use.Emptied:
		s.holds, s.known = content{State: prefix.State{Owner: w.Owner}}, true // a part of w's prompt
	default: // the engine may have begun nevertheless
		s.known = s.isOf(w.Owner)
		if n := s.holds.Prompt.Common(w.Prompt); n < len(s.holds.Prompt) { // what they have in common is left
			tokens := s.holds.Common(w.Prompt)
			s.holds = content{unsaved: s.holds.unsaved, State: prefix.State{
				Owner: s.holds.Owner, Conversation: s.holds.Conversation, Prompt: s.holds.Prompt[:n], PromptTokens: tokens, Tokens: tokens,
			}}
		}
	}
}

// continues reports whether a prompt continues a recent one, and remembers it.
func (b *slotBook) continues(prompt prefix.Chain) bool {
	if len(prompt) == 0 {
		return false
	}
	isNext := slices.ContainsFunc(prompt[:len(prompt)-1], func(l prefix.Link) bool { return slices.Contains(b.recent, l.Sum) })
	if len(b.recent) == maxDisplaced {
		b.recent = slices.Delete(b.recent, 0, 1)
	}
	b.recent = append(b.recent, prompt[len(prompt)-1].Sum)
	return isNext
}

// followedBy returns what a slot holds that has held c, after a request.
func (c *content) followedBy(w *Waiter, use Use) content {
	after := content{unsaved: w.Unsaved, measured: use.Prompt > 0 && use.Completion > 0}
	after.Owner, after.Conversation, after.Prompt = w.Owner, w.Conversation, w.Prompt
	if use.Prompt > 0 {
		after.PromptTokens, after.Tokens = use.Prompt, use.Prompt+use.Completion
		after.saved = min(c.saved, use.Cached)
	} else {
		rest := w.Prompt.Weight(len(w.Prompt)) - w.Prompt.Weight(c.Prompt.Common(w.Prompt))
		after.PromptTokens = c.Common(w.Prompt) + rest/bytesPerToken
		after.Tokens, after.saved = after.PromptTokens, min(c.saved, c.Common(w.Prompt))
	}
	return after
}

// forget says that contents that match aren't saved any more.
func (b *slotBook) forget(is func(owner, conversation string) bool) {
	for id := range b.slots {
		s := &b.slots[id]
		if is(s.holds.Owner, s.holds.Conversation) {
			s.holds.unsaved = true
		}
		if w := s.borrower; w != nil && is(w.Owner, w.Conversation) {
			w.Unsaved = true
		}
	}
}

// lendSlots assigns slots to a waiter if requests choose their slots.
func (in *Instance) lendSlots(n int, w *Waiter, now time.Time) {
	if n == 0 || !in.Spec.Slotted && !in.Spec.Private {
		return
	}
	if in.book == nil {
		in.book = &slotBook{slots: make([]slotState, in.Spec.Parallel), private: in.Spec.Private}
	}
	in.book.lend(n, w, now)
}

// Holds returns what a slot of the instance holds, as far as is known.
func (in *Instance) Holds(slot int) prefix.State { return in.book.slots[slot].holds.State }

// IsSaving reports whether a slot of the instance is being saved.
func (in *Instance) IsSaving() bool { return in.book.saving() > 0 }

// Loans returns the slots that a waiter was leased, in order.
func (st *State) Loans(in *Instance, waiter uint64) (loans []Loan) {
	if in.book == nil {
		return nil
	}
	for id := range in.book.slots {
		s := &in.book.slots[id]
		if s.borrower == nil || s.borrower.ID != waiter {
			continue
		}
		l := Loan{Slot: id, Reuse: in.book.mayReuse(s, s.borrower)}
		if l.Reuse {
			l.Common = s.holds.Common(s.borrower.Prompt)
		}
		_, l.Cached = in.book.displaced.recalled(&s.holds, s.borrower.Prompt)
		if st.saves(in) && s.isWorthSaving(st.Limits.SaveTokens) {
			// What is displaced can't be saved any more. A conversation is saved before if it continues an earlier request, since there may
			// be many single ones, and has grown by half since it was saved: each save writes all of it.
			c, unsaved := &s.holds, s.holds.State
			l.Unsaved, l.IsMoved = &unsaved, c.goesOn && c.isDisplacedBy(s.borrower.Prompt) && 2*(c.Tokens-c.saved) >= c.saved
		}
		loans = append(loans, l)
	}
	return loans
}

// maxDisplaced is how many contents a book remembers that are no longer in a slot.
const maxDisplaced = 64

// displaced are the contents that an engine has moved from its slots into its prompt cache, the oldest first. It does so when a
// request leaves less than half of what its slot held, and then takes from the cache what has more in common with the request.
type displaced []content

// isDisplacedBy reports whether the engine moves a slot's content into its prompt cache when a prompt follows.
func (c *content) isDisplacedBy(prompt prefix.Chain) bool { return 2*c.Common(prompt) < c.Tokens }

// recalled returns the index of the content that the engine takes from its cache for a prompt on a slot, and how many tokens
// they have in common; -1: it takes none.
func (d displaced) recalled(slot *content, prompt prefix.Chain) (int, int) {
	best, most := -1, 0
	if slot.Tokens > 0 && !slot.isDisplacedBy(prompt) {
		return best, most
	}
	most = slot.Common(prompt)
	for i := range d {
		if n := d[i].Common(prompt); n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		most = 0
	}
	return best, most
}

// exchange records that a prompt follows on a slot. It returns what the engine continues: what the slot held, or a content from the cache.
func (d *displaced) exchange(slot content, prompt prefix.Chain) content {
	before := slot
	if i, _ := d.recalled(&slot, prompt); i >= 0 {
		before = (*d)[i]
		*d = slices.Delete(*d, i, i+1)
	}
	if len(slot.Prompt) > 0 && slot.isDisplacedBy(prompt) {
		// the engine drops beginnings of it
		*d = slices.DeleteFunc(*d, func(o content) bool { return slot.Prompt.Common(o.Prompt) == len(o.Prompt) })
		*d = append(*d, slot)
	}
	return before
}

// bound forgets the oldest contents that the cache has no room for. Zero bytes for a token are unknown.
func (d *displaced) bound(cache int64, perToken float64) {
	n, size := 0, 0.0
	for n < len(*d) && n < maxDisplaced {
		size += float64((*d)[len(*d)-1-n].Tokens) * perToken
		if cache == 0 || size > float64(cache) {
			break
		}
		n++
	}
	*d = slices.Delete(*d, 0, len(*d)-n)
}
