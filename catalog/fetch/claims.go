package fetch

import (
	"context"
	"sync"
)

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
