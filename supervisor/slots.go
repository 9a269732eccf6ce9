package supervisor

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// slotBook is what is known of the slots of an instance that keeps owners apart ([Spec.Private]): an engine's slot keeps
// the prompt of its last request, of which the next one may use what it begins with.
type slotBook struct {
	slots []slotState
	turn  uint64 // counts loans and returns
}

type slotState struct {
	owner   string // whose prompt it keeps, where that is known
	known   bool
	touched bool   // it was lent at least once
	last    uint64 // the turn in which it was lent or returned

	holder   uint64 // the waiter that it is lent to; 0: nobody
	borrower string // who that is
}

// loan is a slot that is lent. Its prompt may be used again if it is the borrower's own.
type loan struct {
	slot  int
	reuse bool
}

// lend chooses n free slots: those that the owner used last, then those that nobody has used, then those that have been left
// alone for the longest.
func (b *slotBook) lend(n int, waiter uint64, owner string) {
	free := make([]int, 0, len(b.slots))
	for id := range b.slots {
		if b.slots[id].holder == 0 {
			free = append(free, id)
		}
	}
	slices.SortStableFunc(free, func(x, y int) int {
		a, c := &b.slots[x], &b.slots[y]
		if order := cmp.Compare(a.rank(owner), c.rank(owner)); order != 0 {
			return order
		}
		if a.isOf(owner) {
			return cmp.Compare(c.last, a.last)
		}
		return cmp.Compare(a.last, c.last)
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

// lentTo are a waiter's slots, in order.
func (b *slotBook) lentTo(waiter uint64) (loans []loan) {
	for id := range b.slots {
		if s := &b.slots[id]; s.holder == waiter {
			loans = append(loans, loan{id, s.isOf(s.borrower)})
		}
	}
	return loans
}

// giveBack ends a waiter's loans. Slots that the engine has begun to use for it keep its owner's prompt from now on; of the
// others nobody can tell what they keep, unless that was the same owner's before.
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

// lendSlots notes which slots a waiter gets of an instance that keeps owners apart.
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

// PinFunc has an engine's request use one slot. Without reuse, nothing of what the slot keeps may be used for it.
type PinFunc func(body [][]byte, slot int, reuse bool) [][]byte

// Pinned is the body of a request that generates, as the instance is to get it. Where that keeps owners apart, each body goes
// to a slot of its own, as many as the lease has. Other requests, such as /detokenize, must not be pinned: their answer would
// count as the use of a slot.
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

// usedSlots are those that the engine has begun to use for the lease.
func (l *Lease) usedSlots() (used []int) {
	for i := range l.pins {
		if p := &l.pins[i]; p.used.Load() {
			used = append(used, p.slot)
		}
	}
	return used
}
