package supervisor

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// slotBook records which owner used which slot of an instance that isolates owners ([Spec.Private]). A slot of an engine
// caches the prompt of its last request, and the next request on it reuses the common prefix.
type slotBook struct {
	slots []slotState
	turn  uint64 // counts loans and returns
}

type slotState struct {
	owner   string // whose prompt it caches, if known
	known   bool
	touched bool   // it was leased at least once
	last    uint64 // the turn in which it was last leased or returned

	holder   uint64 // the waiter that it is leased to; 0: none
	borrower string // the owner of that waiter
}

// loan is a leased slot. Its cached prompt may be reused if it is the borrower's own.
type loan struct {
	slot  int
	reuse bool
}

// lend leases n free slots: first those that the owner used last, then unused ones, then the least recently used.
func (b *slotBook) lend(n int, waiter uint64, owner string) {
	free := make([]int, 0, len(b.slots))
	for id := range b.slots {
		if b.slots[id].holder == 0 {
			free = append(free, id)
		}
	}
	slices.SortStableFunc(free, func(x, y int) int {
		a, c := &b.slots[x], &b.slots[y]
		byAge := cmp.Compare(a.last, c.last)
		if a.isOf(owner) {
			byAge = -byAge
		}
		return cmp.Or(cmp.Compare(a.rank(owner), c.rank(owner)), byAge)
	})
	b.turn++
	for _, id := range free[:min(n, len(free))] {
		s := &b.slots[id]
		s.holder, s.borrower, s.touched, s.last = waiter, owner, true, b.turn
	}
}

func (s *slotState) isOf(owner string) bool { return s.known && s.owner == owner }

func (s *slotState) rank(owner string) int {
	switch {
	case s.isOf(owner):
		return 0
	case !s.touched:
		return 1
	default:
		return 2
	}
}

// lentTo returns a waiter's slots, in order.
func (b *slotBook) lentTo(waiter uint64) (loans []loan) {
	for id := range b.slots {
		if s := &b.slots[id]; s.holder == waiter {
			loans = append(loans, loan{id, s.isOf(s.borrower)})
		}
	}
	return loans
}

// giveBack returns a waiter's slots. The used ones now cache a prompt of its owner. What the others cache is unknown, unless
// it was the same owner's before.
func (b *slotBook) giveBack(waiter uint64, used []int) {
	b.turn++
	for id := range b.slots {
		s := &b.slots[id]
		if s.holder != waiter {
			continue
		}
		s.known = s.isOf(s.borrower) || slices.Contains(used, id)
		s.owner, s.holder, s.borrower, s.last = s.borrower, 0, "", b.turn
	}
}

// lendSlots assigns slots to a waiter if the instance isolates owners.
func (in *Instance) lendSlots(n int, w *Waiter) {
	if !in.Spec.Private {
		return
	}
	if in.book == nil {
		in.book = &slotBook{slots: make([]slotState, in.Spec.Parallel)}
	}
	in.book.lend(n, w.ID, w.Owner)
}

// pin is a slot of a lease.
type pin struct {
	loan
	used atomic.Bool // the engine has begun to answer a request on it
}

// PinFunc edits a request's body so that the engine uses one slot for it. Without reuse, the slot's cached prompt must not be
// used.
type PinFunc func(body [][]byte, slot int, reuse bool) [][]byte

// Pinned returns the body of a generating request as the instance must get it. If the instance isolates owners, the bodies of
// a lease are spread over its slots. Don't pin other requests, such as /detokenize: their answers would count as the use of
// a slot.
func (l *Lease) Pinned(body Payload, name PinFunc) Payload {
	if len(l.pins) == 0 {
		return body
	}
	n := int(l.pinned.Add(1)) - 1
	p := &l.pins[n%len(l.pins)]
	body.Pieces = name(body.Pieces, p.slot, p.reuse || p.used.Load())
	body.pin = p
	return body
}

// usedSlots returns the slots on which the engine has begun to answer.
func (l *Lease) usedSlots() (used []int) {
	for i := range l.pins {
		if p := &l.pins[i]; p.used.Load() {
			used = append(used, p.slot)
		}
	}
	return used
}
