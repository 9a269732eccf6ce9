package fetch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/outbound"
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

// claims prevents two jobs from writing the same file.
type claims struct {
	mu    sync.Mutex
	taken map[string]chan struct{} // closed when the file is released
}

// take waits until a file is free, and claims it.
func (c *claims) take(ctx context.Context, name string) (free func(), err error) {
	for {
		c.mu.Lock()
		if c.taken == nil {
			c.taken = map[string]chan struct{}{}
		}
		busy := c.taken[name]
		if busy == nil {
			mine := make(chan struct{})
			c.taken[name] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.taken, name)
				close(mine)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-busy:
		}
	}
}

// gate delays requests while the hub asks for a pause.
type gate struct {
	mu    sync.Mutex
	until time.Time
}

func (g *gate) shut(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until.After(g.until) {
		g.until = until
	}
}

func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	left := time.Until(g.until)
	g.mu.Unlock()
	return outbound.Sleep(ctx, left)
}

// every calls do at each interval until stop is called. stop waits for a running call.
func every(ctx context.Context, interval time.Duration, do func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for outbound.Sleep(ctx, interval) == nil {
			do()
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
