package api

import (
	"context"
	"sync"
	"sync/atomic"
)

// together calls do with 0 to n-1, at most so many at a time. The first failure cancels the context of the others, and is
// returned. A panic goes on in the caller.
func together(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	if n == 1 {
		return do(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		workers sync.WaitGroup
		next    = make(chan int)
		fault   atomic.Pointer[panicked]
	)
	work := func() {
		defer func() {
			if f := recover(); f != nil {
				fault.Store(asPanicked(f))
				cancel(errPanicked)
			}
		}()
		for i := range next {
			if ctx.Err() != nil {
				return
			}
			if err := do(ctx, i); err != nil {
				cancel(err) // only the first counts
			}
		}
	}
	for range min(atOnce, n) {
		workers.Go(work)
	}
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	if f := fault.Load(); f != nil {
		f.again()
	}
	return context.Cause(ctx)
}
