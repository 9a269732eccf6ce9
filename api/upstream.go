package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
)

// Where the engines answer.
const chatPath = "/v1/chat/completions"

// maxFault bounds how much of an engine's error is read.
const maxFault = 64 << 10

// defaultStall is how long an engine may be silent amid a request. llama-server breaks its silence every 30 s while a
// stream is open, whatever it is busy with, so only a process that is stuck as a whole is silent for so long.
const defaultStall = 5 * time.Minute

// errStalled ends the upstream request of an engine that has been silent for too long.
var errStalled = errors.New("the engine is silent")

// errPanicked ends the other upstream requests of a request that made a part of it panic.
var errPanicked = errors.New("a fault of ours")

// upstream is an engine's answer: status 200, its body still to be read. It comes with the slots that it was asked on.
type upstream struct {
	lease *supervisor.Lease
	ctx   context.Context // of the upstream request
	body  io.Reader
	watch *time.Timer
	limit time.Duration
}

// Read reads the answer. Silence counts only while somebody listens: a client may be slow.
func (u *upstream) Read(p []byte) (int, error) {
	u.watch.Reset(u.limit)
	n, err := u.body.Read(p)
	u.watch.Stop()
	return n, err
}

// fault is what a reader that found one has to return: that the engine was silent for too long is the reason of what
// looks like a broken answer.
func (u *upstream) fault(found error) error {
	if errors.Is(context.Cause(u.ctx), errStalled) {
		return stalled(u.lease)
	}
	return found
}

// exchange sends an engine one request, and has its answer read. A request of which the client has seen nothing yet, since
// the engine ended before or amid its answer, is sent once more; the supervisor has a fresh instance for it by then. read
// has to return such a failure as [retryable]; it is called again then, and has to begin from the start.
func (c *call) exchange(ctx context.Context, path string, target node.Target, use node.Use, body [][]byte, read func(*upstream) error) error {
	err := c.attempt(ctx, path, target, use, body, read, true)
	if isBrokenOff(err) {
		err = c.attempt(ctx, path, target, use, body, read, false)
	}
	return told(err)
}

// brokenOff is a failure after which the same request may be sent again.
type brokenOff struct{ err error }

func (e *brokenOff) Error() string { return e.err.Error() }

func isBrokenOff(err error) bool {
	var e *brokenOff
	return errors.As(err, &e)
}

// told is an error as it is to be told when nothing more is tried.
func told(err error) error {
	if e, ok := errors.AsType[*brokenOff](err); ok {
		return e.err
	}
	return err
}

// retryable marks a failure of an answer of which the client has seen nothing: where the engine ended, the request may be
// sent again. Other failures stay as they are.
func retryable(err error) error {
	var e *translate.Error
	if errors.As(err, &e) && e.IsBrokenOff() {
		return &brokenOff{err}
	}
	return err
}

func (c *call) attempt(ctx context.Context, path string, target node.Target, use node.Use, body [][]byte, read func(*upstream) error, isFirst bool) error {
	lease, err := c.node.Acquire(ctx, target, use)
	if err != nil {
		return err
	}
	defer lease.Release()
	err = c.converse(ctx, lease, path, target, body, read)
	if isBrokenOff(err) && isFirst {
		c.awaitDeath(ctx, lease, err)
	}
	return err
}

// awaitDeath waits until the supervisor knows that an engine has ended, so that the next lease is of another.
func (c *call) awaitDeath(ctx context.Context, lease *supervisor.Lease, err error) {
	hasDied := lease.Died(ctx)
	c.api.Log.Warn("an engine broke off", "request", c.id, "instance", lease.Instance.ID, "has_died", hasDied, "error", err)
}

// converse sends one request on a lease, which may be one of several on it, and has its answer read.
func (c *call) converse(ctx context.Context, lease *supervisor.Lease, path string, target node.Target, body [][]byte, read func(*upstream) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := c.api.Stall
	watch := time.AfterFunc(limit, func() { cancel(errStalled) })
	defer watch.Stop()
	resp, err := lease.PostPieces(ctx, path, lease.Pinned(supervisor.Payload{Pieces: body, Keeper: c.held.keeper()}, c.node.Wire(target.Model).Pin))
	if err != nil {
		return c.notAnswered(ctx, lease, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, maxFault))
		return c.node.Wire(target.Model).Fault(resp.StatusCode, said)
	}
	if err := read(&upstream{lease, ctx, resp.Body, watch, limit}); err != nil {
		return err
	}
	lease.Answered()
	return nil
}

func (c *call) notAnswered(ctx context.Context, lease *supervisor.Lease, err error) error {
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), errStalled) {
			return stalled(lease)
		}
		return ctx.Err()
	}
	c.api.Log.Warn("a request was not answered", "request", c.id, "instance", lease.Instance.ID, "error", err)
	return &brokenOff{&translate.Error{
		Kind:    translate.KindEngineFailed,
		Message: "The engine of " + lease.Instance.ID + " ended before it answered. Its log says more.",
	}}
}

// stalled gives an engine up that is silent: it would be as silent to the next request.
func stalled(lease *supervisor.Lease) error {
	lease.Condemn("it stopped answering amid a request")
	return &translate.Error{
		Kind:    translate.KindStalled,
		Message: "The engine of " + lease.Instance.ID + " has stopped answering, and is being ended. Try again: the next request finds a fresh one.",
	}
}
