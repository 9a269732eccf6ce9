package api

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// errPanicked cancels the context of the others when one has panicked.
var errPanicked = errors.New("a fault of ours")

// together calls do with 0 to n-1, at most atOnce at a time. The first error cancels the context of the others, and is returned. A
// panic continues in the caller.
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

// panicked is a panic in one of a request's goroutines, on its way to the one that answers, where it ends one request and not the
// process. It has the stack of the panic.
type panicked struct {
	fault any
	stack []byte
}

// asPanicked wraps what was recovered. It has to be called on the stack of the panic.
func asPanicked(fault any) *panicked {
	if p, ok := fault.(*panicked); ok {
		return p
	}
	return &panicked{fault, debug.Stack()}
}

// again continues the panic.
func (p *panicked) again() {
	if err, ok := p.fault.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like that
		panic(err)
	}
	panic(p)
}
