package supervisor

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSlotBook(t *testing.T) {
	t.Parallel()
	b := &slotBook{slots: make([]slotState, 3)}
	step := 0
	lend := func(n int, waiter uint64, owner string, want ...loan) {
		t.Helper()
		step++
		b.lend(n, waiter, owner)
		if diff := cmp.Diff(want, b.lentTo(waiter), cmp.AllowUnexported(loan{})); diff != "" {
			t.Fatalf("step %d: loans to %s (-want +got):\n%s", step, owner, diff)
		}
	}
	lend(1, 1, "ann", loan{0, false})
	lend(1, 2, "bob", loan{1, false})
	b.giveBack(1, []int{0})
	b.giveBack(2, []int{1})
	lend(1, 3, "bob", loan{1, true})  // its own
	lend(1, 4, "bob", loan{2, false}) // before somebody else's, one that nobody has used
	lend(1, 5, "bob", loan{0, false}) // only then ann's
	b.giveBack(5, nil)                // of which nothing was used: it may keep ann's prompt, or bob's
	lend(1, 6, "ann", loan{0, false})
	b.giveBack(6, []int{0})
	b.giveBack(3, nil) // still his own
	b.giveBack(4, []int{2})
	lend(1, 7, "bob", loan{2, true}) // the latest of his own
	lend(2, 8, "cid", loan{0, false}, loan{1, false})
	b.giveBack(7, []int{2})
	b.giveBack(8, []int{0}) // the other choice never came that far
	lend(3, 9, "cid", loan{0, true}, loan{1, false}, loan{2, false})
	b.giveBack(9, []int{0, 1, 2})
	lend(1, 10, "", loan{0, false}) // nobody in particular is an owner, too
	b.giveBack(10, []int{0})
	lend(1, 11, "", loan{0, true})
}

func TestSlots_TheLeastRecentOfOthers(t *testing.T) {
	t.Parallel()
	b := &slotBook{slots: make([]slotState, 2)}
	for i, owner := range []string{"ann", "bob"} {
		b.lend(1, uint64(i+1), owner)
	}
	b.giveBack(2, []int{1})
	b.giveBack(1, []int{0})
	b.lend(1, 3, "cid")
	if got := b.lentTo(3); len(got) != 1 || got[0].slot != 1 {
		t.Errorf("%v", got)
	}
}

// Whatever the order, a slot is lent once at a time, and is never used again for an owner whose prompt it doesn't keep.
func TestSlots_AtRandom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(13, 7))
	const slots = 4
	b := &slotBook{slots: make([]slotState, slots)}
	keeps, held, free := [slots]string{}, map[uint64]string{}, slots
	owners := []string{"ann", "bob", "cid"}
	for waiter := uint64(1); waiter < 20_000; waiter++ {
		if n := 1 + random.IntN(2); n <= free {
			owner := owners[random.IntN(len(owners))]
			b.lend(n, waiter, owner)
			held[waiter], free = owner, free-n
			loans := b.lentTo(waiter)
			if len(loans) != n {
				t.Fatalf("%d slots, want %d", len(loans), n)
			}
			for _, l := range loans {
				if l.reuse && keeps[l.slot] != owner {
					t.Fatalf("slot %d keeps %q's prompt, and is used again for %s", l.slot, keeps[l.slot], owner)
				}
			}
		}
		for w, owner := range held { // one of them
			if random.IntN(2) == 0 {
				break
			}
			var used []int
			loans := b.lentTo(w)
			for _, l := range loans {
				if random.IntN(3) > 0 { // the engine has begun, and told so, or was cut off before
					keeps[l.slot] = owner
					if random.IntN(3) > 0 {
						used = append(used, l.slot)
					}
				}
			}
			b.giveBack(w, used)
			delete(held, w)
			free += len(loans)
			break
		}
	}
}

func TestSlots_OnlyWhereOwnersAreKeptApart(t *testing.T) {
	t.Parallel()
	for _, private := range []bool{false, true} {
		p := newPlay(t, Limits{})
		spec := with(specOf("a", 2), func(s *Spec) { s.Private = private })
		p.idle(spec)
		if got := p.st.Instances[0].book != nil; got != private {
			t.Errorf("private %v: there is a book: %v", private, got)
		}
	}
}

// The requests of a lease take its slots in turn. A slot whose prompt is somebody else's is used again once its own is there.
func TestSlots_RequestsOfALeaseTakeTurns(t *testing.T) {
	t.Parallel()
	type use struct {
		slot  int
		reuse bool
	}
	l := &Lease{pins: make([]pin, 3)}
	l.pins[0].loan, l.pins[1].loan, l.pins[2].loan = loan{1, true}, loan{3, false}, loan{4, false}
	for i, want := range []use{{1, true}, {3, false}, {4, false}, {1, true}, {3, true}} {
		var got use
		body := l.Pinned(Payload{}, func(body [][]byte, slot int, reuse bool) [][]byte {
			got = use{slot, reuse}
			return append(body, []byte("pinned"))
		})
		if got != want || len(body.Pieces) != 1 || body.pin == nil {
			t.Errorf("request %d uses %+v, want %+v: %+v", i, got, want, body)
			continue
		}
		body.pin.used.Store(true)
	}
	none := (&Lease{}).Pinned(Payload{}, func([][]byte, int, bool) [][]byte {
		t.Error("a lease without slots of its own pins requests")
		return nil
	})
	if none.pin != nil {
		t.Errorf("%+v", none)
	}
}
