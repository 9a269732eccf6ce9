package api

import (
	"context"
	"errors"

	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// choices has n choices made on one lease, each by an upstream request on a slot of its own: as many at a time as the
// instance has slots for. The slots are given back between two batches, so that a large n doesn't keep others out. A batch
// of which the client has seen nothing is made again if its engine is lost. anew is called before each attempt at the first
// batch.
func (r *run) choices(n int, anew func(), choice func(i int) part) error {
	ctx := r.call.r.Context()
	for first := 0; first < n; {
		made := 0
		err := r.onLease(ctx, n-first, func() wire.Upstream { return choice(first).upstream }, func(lease *supervisor.Lease) error {
			if first == 0 {
				anew()
			}
			made = min(n-first, max(1, lease.Instance.Spec.Parallel))
			err := together(ctx, made, made, func(ctx context.Context, i int) error { return r.converse(ctx, lease, choice(first+i)) })
			if broken, ok := errors.AsType[*brokenOff](err); ok && r.stream != nil && r.stream.sent {
				return &brokenOff{told: broken.told, cause: broken.cause} // another choice has begun to be sent: it can't be sent again
			}
			return err
		})
		if err != nil {
			return err
		}
		first += made
	}
	return nil
}
