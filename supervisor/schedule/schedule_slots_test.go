package schedule

import (
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// slotWorld is what the world knows of slots: what is in them, by all that was done with them, and which are being saved.
type slotWorld struct {
	asked map[uint64]*Waiter   // by id
	keeps map[place]owners     // whose prompts a slot may keep
	last  map[place]*Waiter    // the last request that the engine has begun
	saves []Save               // under way
	left  map[uint64]time.Time // by generation: since when nothing but saves has held up an instance that leaves
}

func newSlotWorld() slotWorld {
	return slotWorld{map[uint64]*Waiter{}, map[place]owners{}, map[place]*Waiter{}, nil, map[uint64]time.Time{}}
}

// place is a slot of a process.
type place struct {
	gen  uint64
	slot int
}

type owners []string

func (o owners) isOnly(owner string) bool {
	return len(o) > 0 && !slices.ContainsFunc(o, func(other string) bool { return other != owner })
}

// checkSlots checks that a lease of slots that requests choose has as many of them as it says, that nobody else has them, that
// none is being saved, and that no owner's prompt is used for another who is isolated.
func (w *world) checkSlots(e Grant) {
	in := w.st.Find(e.Gen)
	if in == nil || in.book == nil {
		return
	}
	lent := w.st.Loans(in, e.Waiter)
	if len(lent) != e.Slots {
		w.fail("waiter %d has slots %+v, want %d", e.Waiter, lent, e.Slots)
	}
	for _, l := range lent {
		slot := place{e.Gen, l.Slot}
		for _, other := range w.leases {
			if other.Gen == e.Gen && slices.ContainsFunc(w.st.Loans(in, other.Waiter), func(o Loan) bool { return o.Slot == l.Slot }) {
				w.fail("%+v is lent twice", slot)
			}
		}
		if slices.ContainsFunc(w.slots.saves, func(s Save) bool { return s.Gen == e.Gen && s.Slot == l.Slot }) {
			w.fail("%+v is lent while it is being saved", slot)
		}
		if owner := in.book.slots[l.Slot].borrower.Owner; in.Spec.Private && l.Reuse && !w.slots.keeps[slot].isOnly(owner) {
			w.fail("%+v may keep prompts of %v, and is used again for %q", slot, w.slots.keeps[slot], owner)
		}
	}
}

// checkSave checks that a save is of a slot that nobody uses, and of a state that may be saved.
func (w *world) checkSave(e Save) {
	in := w.st.Find(e.Gen)
	slot := place{e.Gen, e.Slot}
	last, state := w.slots.last[slot], &in.book.slots[e.Slot].holds.State
	under := slices.ContainsFunc(w.slots.saves, func(s Save) bool { return s.Gen == e.Gen && (s.Slot == e.Slot || !e.Leaving) })
	switch {
	case under:
		w.fail("%+v is saved while it, or another of an instance that stays, is being saved", slot)
	case in.book.slots[e.Slot].borrower != nil:
		w.fail("%+v is saved while it is lent", slot)
	case !in.Savable || w.st.Limits.SaveAfter == 0:
		w.fail("%+v is saved, though nothing may be", slot)
	case last.Unsaved:
		w.fail("%+v is saved, though the request of waiter %d is not to be", slot, last.ID)
	case !w.slots.keeps[slot].isOnly(state.Owner) || last.Owner != state.Owner || last.Conversation != state.Conversation:
		w.fail("%+v is saved as %s of %q, and may keep prompts of %q", slot, state.Conversation, state.Owner, w.slots.keeps[slot])
	case state.Tokens < w.st.Limits.SaveTokens || state.Prompt.Common(last.Prompt) < len(state.Prompt):
		w.fail("%+v is saved as %+v", slot, state)
	case e.Leaving != (in.Status == Draining):
		w.fail("%+v is saved, and its instance is %v", slot, in.Status)
	case !e.Leaving && (in.InUse > 0 || w.now.Sub(in.LastUsed) < w.st.Limits.SaveAfter):
		w.fail("%+v is saved %v after its instance was used by %d", slot, w.now.Sub(in.LastUsed), in.InUse)
	}
	w.slots.saves = append(w.slots.saves, e)
}

// checkLeaving checks that saves hold up a stop, and only for a time.
func (w *world) checkLeaving() {
	for _, in := range w.st.Instances {
		if in.Status != Draining || in.InUse > 0 && !w.st.Closing {
			delete(w.slots.left, in.Gen)
			continue
		}
		since, ok := w.slots.left[in.Gen]
		if !ok {
			since, w.slots.left[in.Gen] = w.now, w.now
		}
		if !slices.ContainsFunc(w.slots.saves, func(s Save) bool { return s.Gen == in.Gen }) {
			w.fail("nothing holds up %s, and it isn't stopped", in.ID)
		}
		if w.now.Sub(since) >= SaveWithin {
			w.fail("%s has been held up for %v", in.ID, w.now.Sub(since))
		}
	}
}

func (w *world) isDue(at time.Time) bool { return !at.IsZero() && !w.now.Before(at) }

// prompts are three conversations with a system prompt in common.
var prompts = [...]prefix.Chain{
	chainOf("s", "s", "s", "a", "b", "c", "d", "e"),
	chainOf("s", "s", "s", "k", "l", "m", "n", "o"),
	chainOf("s", "s", "s", "a", "b", "x", "y", "z"),
}

func (w *world) prompt() prefix.Chain {
	chain := prompts[w.rand.IntN(len(prompts))]
	return chain[:1+w.rand.IntN(len(chain))]
}

func (w *world) giveBack(i int) {
	lease := w.leases[i]
	w.leases = append(w.leases[:i], w.leases[i+1:]...)
	uses := w.uses(lease)
	w.step(Returned{
		Gen: lease.Gen, Slots: lease.Slots, Answered: w.rand.IntN(2) == 0, Key: "a", Waiter: lease.Waiter, Used: uses,
		TokenBytes: 100 * w.rand.Float64(),
	})
}

// uses makes something of the slots of a lease.
func (w *world) uses(lease Grant) (uses []Use) {
	in := w.st.Find(lease.Gen)
	if in == nil {
		return []Use{{Slot: w.rand.IntN(2), Begun: true, Prompt: 1000}}
	}
	by := w.slots.asked[lease.Waiter]
	for _, l := range w.st.Loans(in, lease.Waiter) {
		slot := place{lease.Gen, l.Slot}
		if w.rand.IntN(5) == 0 {
			continue // nothing is sent
		}
		use := Use{Slot: l.Slot, Begun: w.rand.IntN(5) > 0}
		if len(by.Prompt) > 0 && w.rand.IntN(5) == 0 {
			use.Restored = w.rand.IntN(1000)
		}
		if w.rand.IntN(5) > 0 {
			use.Prompt = 100 * len(by.Prompt)
			use.Cached = w.rand.IntN(use.Prompt + 1)
			use.Completion, use.PromptTime = w.rand.IntN(500), time.Duration(w.rand.IntN(1000))*time.Millisecond
		}
		if use.Begun || use.Restored > 0 {
			w.slots.keeps[slot] = nil
		}
		if use.Begun {
			w.slots.last[slot] = by
		}
		w.slots.keeps[slot] = append(w.slots.keeps[slot], by.Owner)
		uses = append(uses, use)
	}
	return uses
}

// endSave ends one of the saves under way.
func (w *world) endSave(i int) {
	save := w.slots.saves[i]
	w.slots.saves = slices.Delete(w.slots.saves, i, i+1)
	ended := Saved{Gen: save.Gen, Slot: save.Slot}
	if w.rand.IntN(3) > 0 {
		ended.Tokens = w.rand.IntN(3000)
	}
	w.step(ended)
}

// forget deletes what an owner has, or a conversation, or both. What was asked before isn't saved any more.
func (w *world) forget() {
	what := Forgot{Owner: []string{"", "x", "y"}[w.rand.IntN(3)], Conversation: []string{"", "x's"}[w.rand.IntN(2)]}
	for _, asked := range w.slots.asked {
		if what != (Forgot{}) && (what.Owner == "" || what.Owner == asked.Owner) && (what.Conversation == "" || what.Conversation == asked.Conversation) {
			asked.Unsaved = true
		}
	}
	w.step(what)
}
