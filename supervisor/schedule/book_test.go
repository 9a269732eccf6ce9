package schedule

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// chainOf is of a prompt whose messages have the given texts, of 400 bytes each, so that a message has about 100 tokens.
func chainOf(messages ...string) prefix.Chain {
	m := prefix.New(0)
	for _, s := range messages {
		m.Message(bytes.Repeat([]byte(s+" "), 400/(len(s)+1)+1)[:400])
	}
	return m.Chain()
}

// lending plays the leases of a book.
type lending struct {
	t   *testing.T
	st  State
	in  *Instance
	now time.Time
}

func newLending(t *testing.T, slots int, change func(*Spec)) *lending {
	spec := specOf("a", slots)
	change(spec)
	return &lending{t: t, in: &Instance{Spec: spec, Status: Ready}, now: noon}
}

func isolated(s *Spec) { s.Private = true }

func choosing(s *Spec) { s.Slotted = true }

// lend leases slots, which must be those that are wanted.
func (l *lending) lend(w Waiter, want ...Loan) {
	l.t.Helper()
	w.Slots = max(1, len(want))
	l.in.lendSlots(w.Slots, &w, l.now)
	if diff := cmp.Diff(want, l.st.Loans(l.in, w.ID), cmp.AllowUnexported(Loan{})); diff != "" {
		l.t.Fatalf("the loans of waiter %d of %s (-want +got):\n%s", w.ID, w.Owner, diff)
	}
}

// back returns the slots of a waiter.
func (l *lending) back(waiter uint64, uses ...Use) {
	l.now = l.now.Add(time.Second)
	l.in.book.giveBack(waiter, uses, l.now)
	l.in.book.displaced.bound(l.in.Spec.PromptCache, 0)
}

// talk is a whole answer to a prompt on one slot. It has as many tokens as the prompt has hundreds of bytes.
func (l *lending) talk(id uint64, w Waiter, use Use, want Loan) {
	l.t.Helper()
	w.ID = id
	l.lend(w, want)
	use.Begun = true
	l.back(id, use)
}

func onSlot(slot int) Use { return Use{Slot: slot, Begun: true} }

func TestSlotBook_OfIsolatedOwners(t *testing.T) {
	t.Parallel()
	l := newLending(t, 3, isolated)
	by := func(id uint64, owner string) Waiter { return Waiter{ID: id, Demand: Demand{Owner: owner}} }
	l.lend(by(1, "ann"), Loan{Slot: 0})
	l.lend(by(2, "bob"), Loan{Slot: 1})
	l.back(1, onSlot(0))
	l.back(2, onSlot(1))
	l.lend(by(3, "bob"), Loan{Slot: 1, Reuse: true}) // its own
	l.lend(by(4, "bob"), Loan{Slot: 2})              // before somebody else's, one that nobody has used
	l.lend(by(5, "bob"), Loan{Slot: 0})              // only then ann's
	l.back(5)                                        // to which nothing was sent
	l.lend(by(6, "ann"), Loan{Slot: 0, Reuse: true})
	l.back(6)
	l.lend(by(7, "bob"), Loan{Slot: 0})
	l.back(7, Use{Slot: 0})             // it didn't begin, as far as is known: it may keep ann's prompt, or bob's
	l.lend(by(8, "ann"), Loan{Slot: 0}) // so it is used for neither
	l.back(8, onSlot(0))
	l.back(3, Use{Slot: 1}) // still his own
	l.back(4, onSlot(2))
	l.lend(by(9, "bob"), Loan{Slot: 2, Reuse: true}) // the latest of his own
	l.lend(by(10, "cid"), Loan{Slot: 0}, Loan{Slot: 1})
	l.back(9, onSlot(2))
	l.back(10, onSlot(0), Use{Slot: 1}) // the other choice never came that far
	l.lend(by(11, "cid"), Loan{Slot: 0, Reuse: true}, Loan{Slot: 1}, Loan{Slot: 2})
	l.back(11, onSlot(0), onSlot(1), onSlot(2))
	l.lend(by(12, ""), Loan{Slot: 0}) // nobody in particular is an owner, too
	l.back(12, onSlot(0))
	l.lend(by(13, ""), Loan{Slot: 0, Reuse: true})
}

func TestSlotBook_TheLeastRecentOfOthers(t *testing.T) {
	t.Parallel()
	l := newLending(t, 2, isolated)
	l.lend(Waiter{ID: 1, Demand: Demand{Owner: "ann"}}, Loan{Slot: 0})
	l.lend(Waiter{ID: 2, Demand: Demand{Owner: "bob"}}, Loan{Slot: 1})
	l.back(2, onSlot(1))
	l.back(1, onSlot(0))
	l.lend(Waiter{ID: 3, Demand: Demand{Owner: "cid"}}, Loan{Slot: 1})
}

// Whatever the order, a slot is lent once at a time, and is never used again for an owner whose prompt it doesn't keep.
func TestSlotBook_AtRandom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(13, 7))
	const slots = 4
	l := newLending(t, slots, isolated)
	type keep struct{ ann, bob, cid bool } // whose prompts it may hold
	mark := func(k *keep, owner string) {
		switch owner {
		case "ann":
			k.ann = true
		case "bob":
			k.bob = true
		default:
			k.cid = true
		}
	}
	keeps, held, free := [slots]keep{}, map[uint64]string{}, slots
	owners := []string{"ann", "bob", "cid"}
	for waiter := uint64(1); waiter < 20_000; waiter++ {
		if n := 1 + random.IntN(2); n <= free {
			w := Waiter{ID: waiter, Demand: Demand{Owner: owners[random.IntN(len(owners))], Prompt: chainOf("system", string(rune('a'+random.IntN(5))))}}
			l.in.lendSlots(n, &w, l.now)
			held[waiter], free = w.Owner, free-n
			loans := l.st.Loans(l.in, waiter)
			if len(loans) != n {
				t.Fatalf("%d slots, want %d", len(loans), n)
			}
			for _, loan := range loans {
				var own keep
				mark(&own, w.Owner)
				if loan.Reuse && keeps[loan.Slot] != own {
					t.Fatalf("slot %d keeps prompts of %+v, and is used again for %s", loan.Slot, keeps[loan.Slot], w.Owner)
				}
			}
		}
		for w, owner := range held { // one of them
			if random.IntN(2) == 0 {
				break
			}
			var uses []Use
			for _, loan := range l.st.Loans(l.in, w) {
				if random.IntN(4) == 0 {
					continue // nothing is sent
				}
				use := Use{Slot: loan.Slot, Prompt: random.IntN(2) * 50}
				if loan.Reuse && random.IntN(4) == 0 {
					use.Restored = 40
				}
				if random.IntN(3) > 0 {
					use.Begun, keeps[loan.Slot] = true, keep{}
				}
				mark(&keeps[loan.Slot], owner)
				uses = append(uses, use)
			}
			free += len(l.st.Loans(l.in, w))
			l.back(w, uses...)
			delete(held, w)
			break
		}
	}
}

func TestSlotBook_OnlyWhereRequestsChoose(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Spec)
		want   bool
	}{
		"the engine chooses":  {func(*Spec) {}, false},
		"requests choose":     {choosing, true},
		"owners are isolated": {isolated, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, Limits{})
			p.idle(with(specOf("a", 2), tt.change))
			if got := p.st.Instances[0].book != nil; got != tt.want {
				t.Errorf("there is a book: %v", got)
			}
		})
	}
}

// What a slot holds after a request, as far as that is known.
func TestSlotBook_Holds(t *testing.T) {
	t.Parallel()
	first := Use{Prompt: 300, Completion: 50}
	for name, tt := range map[string]struct {
		use   Use
		next  Waiter
		want  int // tokens in common with the next request
		saved int // tokens of what the slot holds that are saved, if all was saved before the request
	}{
		"the conversation goes on":                  {Use{Begun: true, Prompt: 450, Cached: 340, Completion: 20}, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b", "c", "d")}}, 450, 340},
		"it is only known that the engine began":    {Use{Begun: true}, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b", "c", "d")}}, 400, 300},
		"nothing is sent":                           {Use{Slot: -1}, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b", "c", "d")}}, 300, 350},
		"the engine may have begun":                 {Use{}, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b", "c", "d")}}, 300, 350},
		"less was used than the slot should hold":   {Use{Begun: true, Prompt: 450, Cached: 120, Completion: 20}, Waiter{Demand: Demand{Prompt: chainOf("s", "a")}}, 225, 120},
		"a state was restored before":               {Use{Begun: true, Restored: 330, Prompt: 450, Cached: 330, Completion: 20}, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b", "c")}}, 450, 330},
		"a state was restored, and not used at all": {Use{Begun: true, Restored: 330, Prompt: 450, Completion: 20}, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b", "c")}}, 450, 0},
		"a restore failed":                          {Use{Begun: true, Emptied: true, Prompt: 450, Completion: 20}, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b", "c")}}, 450, 0},
		"a restore failed, and no more":             {Use{Emptied: true}, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b", "c")}}, 0, 0},
		"a state was restored, and no more":         {Use{Restored: 330}, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b", "c")}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLending(t, 1, choosing)
			l.talk(1, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b")}}, first, Loan{Reuse: true})
			l.in.book.slots[0].holds.saved = 350
			l.lend(Waiter{ID: 2, Demand: Demand{Prompt: chainOf("s", "a", "b", "c")}}, Loan{Reuse: true, Common: 300})
			l.back(2, tt.use)
			tt.next.ID = 3
			l.lend(tt.next, Loan{Reuse: true, Common: tt.want})
			if got := l.in.book.slots[0].holds.saved; got != tt.saved {
				t.Errorf("%d tokens are saved, want %d", got, tt.saved)
			}
		})
	}
}

// A request that didn't get through leaves at least what it has in common with what the slot held.
func TestSlotBook_HoldsWhatTwoShare(t *testing.T) {
	t.Parallel()
	l := newLending(t, 1, choosing)
	l.talk(1, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b", "c")}}, Use{Prompt: 400, Completion: 10}, Loan{Reuse: true})
	l.lend(Waiter{ID: 2, Demand: Demand{Prompt: chainOf("s", "a", "x")}}, Loan{Reuse: true, Common: 200})
	l.back(2, Use{})
	l.lend(Waiter{ID: 3, Demand: Demand{Prompt: chainOf("s", "a", "b", "c")}}, Loan{Reuse: true, Common: 200})
}

// What was in a slot when a restore failed isn't in the engine's prompt cache.
func TestSlotBook_AFailedRestoreDisplacesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		use  Use
		want int
	}{
		"displaced by a request": {Use{Begun: true, Prompt: 100, Completion: 10}, 1},
		"lost by a restore":      {Use{Begun: true, Emptied: true, Prompt: 100, Completion: 10}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLending(t, 1, func(s *Spec) { s.Slotted, s.PromptCache = true, 1<<30 })
			l.talk(1, Waiter{Demand: Demand{Prompt: chainOf("s", "a", "b")}}, Use{Prompt: 300, Completion: 50}, Loan{Reuse: true})
			l.lend(Waiter{ID: 2, Demand: Demand{Prompt: chainOf("x")}}, Loan{Reuse: true})
			l.back(2, tt.use)
			if got := len(l.in.book.displaced); got != tt.want {
				t.Errorf("%d contents are displaced, want %d", got, tt.want)
			}
		})
	}
}
