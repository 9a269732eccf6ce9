package api

import (
	"context"
	"sync"
)

// round has some choices made at a time, from the first on, each by an upstream request on a slot of its own. It tells how
// many. The first failure ends them all.
func (r *chatRun) round(ctx context.Context, first int) (int, error) {
	use := r.rq.use
	use.Slots = r.ask.N - first
	lease, err := r.call.node.Acquire(ctx, r.rq.target, use)
	if err != nil {
		return 0, err
	}
	defer lease.Release()
	r.begin(lease.Instance)
	n := min(use.Slots, max(1, lease.Instance.Spec.Parallel))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		choices sync.WaitGroup
		faults  = make(chan any, n)
	)
	for i := first; i < first+n; i++ {
		choices.Go(func() {
			defer func() {
				if fault := recover(); fault != nil {
					faults <- fault
					cancel(errPanicked)
				}
			}()
			err := r.call.converse(ctx, lease, chatPath, r.rq.target, r.body(i), func(up *upstream) error { return r.read(i, up) })
			if err != nil {
				cancel(err) // only the first counts
			}
		})
	}
	choices.Wait()
	select {
	case fault := <-faults:
		panic(fault) // where it costs one request, not the process
	default:
	}
	err = context.Cause(ctx)
	if r.stream != nil && r.stream.sent {
		err = told(err) // another choice has begun to be sent
	}
	if isBrokenOff(err) {
		r.call.awaitDeath(r.call.r.Context(), lease, err)
	}
	return n, err
}
