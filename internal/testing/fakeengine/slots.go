package fakeengine

import (
	"context"
	"slices"
	"sync"
)

// slots hands out slots, first come, first served. Requests without a slot wait in an unlimited queue.
type slots struct {
	mu     sync.Mutex
	all    int
	free   []int
	queue  []*waiter
	states []slotState // of each slot's current or last request
	holds  []content
}

// slotState is the state of a slot in GET /slots.
type slotState struct {
	task             int // the request's number; 0: none yet
	prompt           int // tokens that were handed to the model
	processed, spoke int // tokens of the prompt that were evaluated, and tokens generated
}

type waiter struct {
	n     int
	at    int // the slot that it is pinned to; -1: any
	given chan []int
}

func newSlots(n int) *slots {
	s := &slots{all: n, states: make([]slotState, n), holds: make([]content, n)}
	for i := range n {
		s.free = append(s.free, i)
	}
	return s
}

// join adds a request for n slots to the end of the queue. If it is pinned to a slot, at is that; else it is -1. As in the real one, any
// number is some slot's.
func (s *slots) join(n, at int) *waiter {
	if at >= 0 {
		at %= s.all
	}
	w := &waiter{n: n, at: max(at, -1), given: make(chan []int, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, w)
	s.serve()
	return w
}

// isServed reports whether a waiter has its slots.
func (w *waiter) isServed() bool { return len(w.given) > 0 }

// take waits for a waiter's slots. The error is the context's.
func (s *slots) take(ctx context.Context, w *waiter) ([]int, error) {
	select {
	case ids := <-w.given:
		return ids, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(q *waiter) bool { return q == w })
	select {
	case ids := <-w.given: // both happened
		s.giveBack(ids)
	default:
		s.serve() // it may have stood in others' way
	}
	return nil, ctx.Err()
}

func (s *slots) release(ids []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.giveBack(ids)
}

// The callers of giveBack and serve hold mu.
func (s *slots) giveBack(ids []int) {
	s.free = append(s.free, ids...)
	slices.Sort(s.free)
	s.serve()
}

// A waiter that is pinned to a busy slot lets others pass.
func (s *slots) serve() {
	for i := 0; i < len(s.queue); {
		w, from := s.queue[i], 0
		if w.at >= 0 {
			from = slices.Index(s.free, w.at)
		}
		if from < 0 {
			i++
			continue
		}
		if w.n > len(s.free) {
			return
		}
		from = min(from, len(s.free)-w.n)
		s.queue = slices.Delete(s.queue, i, i+1)
		w.given <- slices.Clone(s.free[from : from+w.n])
		s.free = slices.Delete(s.free, from, from+w.n)
	}
}

// content returns what a slot holds.
func (s *slots) content(slot int) content {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds[slot]
}

// hold sets what a slot holds. Its user calls it.
func (s *slots) hold(slot int, c content) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds[slot] = c
}

// tell sets the state of a request's slots.
func (s *slots) tell(ids []int, state slotState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.states[id] = state
	}
}

// told returns the states of the slots.
func (s *slots) told() []slotState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.states)
}

// isFree reports which slots are free.
func (s *slots) isFree() []bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := make([]bool, s.all)
	for _, id := range s.free {
		free[id] = true
	}
	return free
}
