package fetch

import (
	"context"
	"slices"
	"sync"
)

// DefaultAtOnce is how many downloads run at a time unless [Options] say otherwise. Each has several connections to its hub, so more aren't
// faster together, and the first one is complete later.
const DefaultAtOnce = 3

// queue admits a number of runs at a time, in the order in which they entered.
type queue struct {
	mu      sync.Mutex
	most    int
	running int
	waiting []*place
}

// place is a run's place in the queue.
type place struct {
	queue    *queue
	admitted chan struct{} // closed when the run may begin
}

// limit changes how many runs are admitted. Those that run already go on.
func (q *queue) limit(most int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most = most
	q.admit()
}

func (q *queue) enter() *place {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := &place{q, make(chan struct{})}
	q.waiting = append(q.waiting, p)
	q.admit()
	return p
}

// admit admits those for whom there is room. q.mu is held.
func (q *queue) admit() {
	for len(q.waiting) > 0 && q.running < q.most {
		close(q.waiting[0].admitted)
		q.waiting = q.waiting[1:]
		q.running++
	}
}

func (p *place) isAdmitted() bool {
	select {
	case <-p.admitted:
		return true
	default:
		return false
	}
}

// wait waits until the run may begin. The error is the context's.
func (p *place) wait(ctx context.Context) error {
	select {
	case <-p.admitted:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives the place up.
func (p *place) leave() {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.isAdmitted() {
		q.running--
	} else {
		q.waiting = slices.DeleteFunc(q.waiting, func(other *place) bool { return other == p })
	}
	q.admit()
}
