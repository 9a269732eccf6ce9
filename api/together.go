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

// panicked is a panic that is passed on from one of a request's goroutines to the one that answers, where it costs one request
// and not the process. It keeps the stack that it happened on.
type panicked struct {
	fault any
	stack []byte
}

// asPanicked makes one of what was recovered. It has to be called on the stack that it happened on.
func asPanicked(fault any) *panicked {
	if p, ok := fault.(*panicked); ok {
		return p
	}
	return &panicked{fault, debug.Stack()}
}

// again has the panic go on.
func (p *panicked) again() {
	if err, ok := p.fault.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like that
		panic(err)
	}
	panic(p)
}
