package api

import (
	"context"
	"errors"
	"sync"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// rounds has the choices made, as many at a time as the model's instance has slots for. The slots are given back between
// two rounds, so that a large n doesn't keep others out. A round of which the client has seen nothing is made again where
// its engine ended.
func (r *chatRun) rounds(ctx context.Context) error {
	for first := 0; first < r.ask.N; {
		made := 0
		err := r.call.guarded(ctx, r.rq.target, r.rq.demand, func() [][]byte { return r.upstream(first).Body }, func(demand node.Demand) error {
			demand.Slots = max(demand.Slots, r.ask.N-first)
			return r.call.leased(ctx, r.rq.target, demand, func(lease *supervisor.Lease) error {
				made = min(r.ask.N-first, max(1, lease.Instance.Spec.Parallel))
				return r.round(ctx, lease, first, made)
			})
		})
		if err != nil {
			return err
		}
		first += made
	}
	return nil
}

// round has n choices made at a time, from the first on, each by an upstream request on a slot of its own. The first
// failure ends them all.
func (r *chatRun) round(ctx context.Context, lease *supervisor.Lease, first, n int) error {
	if first == 0 {
		r.begin(lease.Instance)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		choices sync.WaitGroup
		faults  = make(chan *panicked, n)
	)
	for i := first; i < first+n; i++ {
		choices.Go(func() {
			defer func() {
				if fault := recover(); fault != nil {
					faults <- asPanicked(fault)
					cancel(errPanicked)
				}
			}()
			err := r.call.converse(ctx, lease, r.rq.target, r.upstream(i), func(up *upstream) error { return r.read(ctx, i, up) })
			if err != nil {
				cancel(err) // only the first counts
			}
		})
	}
	choices.Wait()
	select {
	case fault := <-faults:
		fault.again()
	default:
	}
	err := context.Cause(ctx)
	if broken, ok := errors.AsType[*brokenOff](err); ok && r.stream != nil && r.stream.sent {
		return &brokenOff{told: broken.told, cause: broken.cause} // another choice has begun to be sent: it can't be sent again
	}
	return err
}
