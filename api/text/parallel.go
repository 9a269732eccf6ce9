package text

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
)

// errPanicked cancels the context of the others when one has panicked.
var errPanicked = errors.New("a fault of ours")

// Parallel calls do with 0 to n-1, at most atOnce at a time. The first error cancels the context of the others, and is returned. A
// panic continues in the caller.
func Parallel(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	if n == 1 {
		return do(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		workers sync.WaitGroup
		next    = make(chan int)
		fault   atomic.Pointer[endpoint.Panic]
	)
	work := func() {
		defer func() {
			if f := recover(); f != nil {
				fault.Store(endpoint.AsPanic(f))
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
		f.Again()
	}
	return context.Cause(ctx)
}
