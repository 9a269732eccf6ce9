package text

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Choices has n choices made on one lease, each by an upstream request on a slot of its own: as many at a time as the
// instance has slots for. The slots are given back between two batches, so that a large n doesn't keep others out. Of a batch
// whose engine is lost, the choices that aren't complete go on, or are made again if the client has seen nothing of them. restart is
// called before each attempt at the first batch of which the client has seen nothing.
func (r *Run) Choices(n int, restart func(), choice func(i int) Part) error {
	ctx := r.Call.Request.Context()
	for first := 0; first < n; {
		t, err := r.newRelay(choice(first))
		if err != nil {
			return err
		}
		batch := []*relay{t}
		err = r.OnLease(ctx, n-first, nil, func() wire.Upstream { return t.upstream }, func(lease *supervisor.Lease) error {
			if first == 0 && (r.Stream == nil || !r.Stream.Sent) {
				restart()
			}
			slots := max(1, lease.Instance.Spec.Parallel)
			for len(batch) < min(n-first, slots) {
				t, err := r.newRelay(choice(first + len(batch)))
				if err != nil {
					return err
				}
				batch = append(batch, t)
			}
			return r.batch(ctx, lease, batch, slots)
		})
		for _, t := range batch {
			if err != nil {
				r.giveUp(t)
				err = t.refined(err)
			}
		}
		if err != nil {
			return err
		}
		first += len(batch)
	}
	return nil
}

// batch has the choices of a batch made that aren't complete.
func (r *Run) batch(ctx context.Context, lease *supervisor.Lease, batch []*relay, slots int) error {
	left := slices.DeleteFunc(slices.Clone(batch), func(t *relay) bool { return t.state == wire.Done })
	err := Parallel(ctx, len(left), slots, func(ctx context.Context, i int) error { return r.converse(ctx, lease, left[i]) })
	broken, ok := errors.AsType[*engineLost](err)
	if !ok {
		return err
	}
	again := true
	for _, t := range left {
		if t.state == wire.Done {
			continue
		}
		again = t.plan(true) && again // also where the failure of another choice has ended it
	}
	return &engineLost{clientErr: broken.clientErr, cause: broken.cause, again: again}
}

// ChoicesAtOnce is how many choices of one request are generated at a time, if the model has as many slots. The others wait
// here and not in the queue, so that one request can't fill that.
const ChoicesAtOnce = 4

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
