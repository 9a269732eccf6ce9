package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

// slowClientTimeout is how long a client may take nothing of its answer, unless the settings say otherwise.
const slowClientTimeout = time.Minute

// bodyPiece is how many bytes of a body in one piece a client has to take within that time.
const bodyPiece = 64 << 10

// errSlowClient ends the request of a client that takes nothing of its answer.
var errSlowClient = errors.New("the client stopped reading")

// writing watches over the writes to a client. One that takes nothing for too long has its request cancelled.
type writing struct {
	timer *time.Timer
	limit time.Duration // how long a write may take

	mu   sync.Mutex
	over bool // the writer is no longer ours
}

// errUnwritable ends the request of a client that can't be written to.
var errUnwritable = errors.New("the client can't be written to")

// write writes to the client, and flushes where that is asked for. Only one goroutine may do so at a time. An error has
// cancelled the request. What can't be flushed is sent when the server gets to it.
func (c *call) write(p []byte, flush bool) error {
	if c.writing.timer == nil {
		c.writing.limit = c.slowClient()
		c.writing.timer = time.AfterFunc(c.writing.limit, c.giveUpClient)
	} else {
		c.writing.timer.Reset(c.writing.limit)
	}
	defer c.writing.timer.Stop()
	_, err := c.w.Write(p)
	if err == nil && flush {
		err = http.NewResponseController(c.w).Flush()
	}
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	c.cancel(errUnwritable)
	return err
}

func (c *call) slowClient() time.Duration {
	if c.node == nil {
		return slowClientTimeout
	}
	return cmp.Or(c.node.Settings().SlowClient, slowClientTimeout)
}

// giveUpClient cancels the request, and has the write fail that is under way. A deadline is only set then: over HTTP/2 one
// that is set ends the stream when it comes, whether or not a write waits.
func (c *call) giveUpClient() {
	c.writing.mu.Lock()
	defer c.writing.mu.Unlock()
	if c.writing.over {
		return
	}
	c.api.Log.Warn("a client stopped reading; its request is cancelled", "request", c.id)
	c.cancel(errSlowClient)
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(-time.Second))
}

// endWriting keeps the timer from a writer that is no longer ours.
func (c *call) endWriting() {
	c.writing.mu.Lock()
	defer c.writing.mu.Unlock()
	c.writing.over = true
}

// releaseIfSlow gives a lease back when its client is given up, until the function that it returns is called. The write
// that waits may go on waiting: over HTTP/2 a client can keep the whole connection from taking anything.
func (c *call) releaseIfSlow(lease *supervisor.Lease) (end func()) {
	ctx := c.r.Context()
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errSlowClient) {
			lease.Release()
		}
	})
	return func() { stop() }
}
