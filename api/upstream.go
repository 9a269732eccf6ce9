package api

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// maxFault bounds how much of an engine's error is read.
const maxFault = 64 << 10

// errPanicked ends the other upstream requests of a request that made a part of it panic.
var errPanicked = errors.New("a fault of ours")

// upstream is an engine's answer: status 200, its body still to be read. It comes with the slots that it was asked on.
type upstream struct {
	io.Reader

	call  *call
	lease *supervisor.Lease
}

// exchange sends an engine one request, and has its answer read. A request of which the client has seen nothing yet, since
// the engine ended before or amid its answer, is sent once more; the supervisor has a fresh instance for it by then. read
// has to return such a failure as [retryable]; it is called again then, and has to begin from the start.
func (c *call) exchange(ctx context.Context, target node.Target, demand node.Demand, ask wire.Upstream, read func(*upstream) error) error {
	return c.guarded(ctx, target, demand, func() [][]byte { return ask.Body }, func(demand node.Demand) error {
		return c.leased(ctx, target, demand, func(lease *supervisor.Lease) error {
			return c.converse(ctx, lease, target, ask, read)
		})
	})
}

// leased has something done on a lease. Where that fails since the engine broke off, the error says what became of it.
func (c *call) leased(ctx context.Context, target node.Target, demand node.Demand, do func(*supervisor.Lease) error) error {
	lease, err := c.node.Acquire(ctx, target, demand)
	if err != nil {
		return &notLeased{target.Model.Key, err}
	}
	defer lease.Release()
	defer c.releaseIfSlow(lease)()
	return c.examined(lease, do(lease))
}

// converse sends one request on a lease, which may be one of several on it, and has its answer read.
func (c *call) converse(ctx context.Context, lease *supervisor.Lease, target node.Target, ask wire.Upstream, read func(*upstream) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	engine := c.node.Wire(target.Model)
	payload := supervisor.Payload{Pieces: ask.Body, Memory: c.held.memory()}
	if pinner, ok := engine.(wire.Pinner); ok && pinner.Generates(ask.Path) {
		payload = lease.Pinned(payload, pinner.Pin)
	}
	resp, err := lease.PostPieces(ctx, ask.Path, payload)
	if err != nil {
		if c.r.Context().Err() != nil {
			c.answered.Store(true) // the engine was at work when the client disconnected
		}
		return c.notAnswered(ctx, lease, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, maxFault))
		fault := engine.Fault(resp.StatusCode, said)
		if fault.Kind == translate.KindContextOverflow {
			return &outgrown{fault, lease.Instance}
		}
		return fault
	}
	c.answered.Store(true)
	if err := read(&upstream{resp.Body, c, lease}); err != nil {
		return err
	}
	lease.Answered()
	return nil
}

// all reads an answer in one piece, of at most so many bytes.
func (u *upstream) all(ctx context.Context, most int64) ([]byte, error) {
	said, err := io.ReadAll(io.LimitReader(u, most+1))
	switch {
	case err != nil:
		return nil, u.call.notAnswered(ctx, u.lease, err)
	case int64(len(said)) > most:
		return nil, tooMuch()
	}
	return said, nil
}

func (c *call) notAnswered(ctx context.Context, lease *supervisor.Lease, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if openfiles.AreExhausted(err) {
		return c.noFiles(err) // the engine wasn't even asked
	}
	c.api.Log.Warn("a request was not answered", "request", c.id, "instance", lease.Instance.ID, "error", err)
	return &brokenOff{again: true, cause: err, told: &translate.Error{
		Kind:    translate.KindEngineFailed,
		Message: "The engine of " + lease.Instance.ID + " ended before it answered. Its log says more.",
	}}
}
