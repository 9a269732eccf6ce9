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
}

// slotState is the state of a slot in GET /slots.
type slotState struct {
	task             int // the request's number; 0: none yet
	prompt           int // tokens that were handed to the model
	processed, spoke int // tokens of the prompt that were evaluated, and tokens generated
}

type waiter struct {
	n     int
	given chan []int
}

func newSlots(n int) *slots {
	s := &slots{all: n, states: make([]slotState, n)}
	for i := range n {
		s.free = append(s.free, i)
	}
	return s
}

// join adds a request for n slots to the end of the queue.
func (s *slots) join(n int) *waiter {
	w := &waiter{n: n, given: make(chan []int, 1)}
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

func (s *slots) serve() {
	for len(s.queue) > 0 && s.queue[0].n <= len(s.free) {
		w := s.queue[0]
		s.queue = s.queue[1:]
		w.given <- slices.Clone(s.free[:w.n])
		s.free = slices.Delete(s.free, 0, w.n)
	}
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
