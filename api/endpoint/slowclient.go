package endpoint

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

// slowClientTimeout is how long a client may read nothing of its answer, unless the settings say otherwise.
const slowClientTimeout = time.Minute

// bodyPiece is the number of bytes of an answer in one piece that a client has to read within that time.
const bodyPiece = 64 << 10

// buffered is the number of bytes after a flush that net/http's server takes from a handler without waiting for the client. That of HTTP/3
// takes none.
const buffered = 2 << 10

// errSlowClient cancels the request of a client that has stopped reading.
var errSlowClient = errors.New("the client stopped reading")

// writing limits the time of writes to a client. If a write takes too long, the request is cancelled. The timer runs on between two
// writes, since most are over at once.
type writing struct {
	mu     sync.Mutex
	timer  *time.Timer          // nil before the first write
	limit  time.Duration        // how long a write may take
	begun  time.Time            // when the current write began; zero: there is none
	armed  bool                 // the timer runs
	failed atomic.Bool          // a write has
	over   bool                 // the request has ended, so its writer may not be used
	leases []*supervisor.Lease  // that the request holds
	only   [1]*supervisor.Lease // what leases begins with: most requests hold one
}

// errUnwritable cancels the request of a client that can't be written to.
var errUnwritable = errors.New("the client can't be written to")

// write writes to the client, and flushes if flush is set. Only one goroutine may call it at a time. An error has cancelled the
// request. If the writer can't flush, the server sends the bytes later.
func (c *Call) write(p []byte, flush bool) error {
	if !flush && len(p) <= buffered && c.Request.ProtoMajor < 3 {
		return c.writeNow(p, false)
	}
	c.beginWrite()
	defer c.endWrite()
	return c.writeNow(p, flush)
}

// beginWrite limits the time of a write.
func (c *Call) beginWrite() {
	w := &c.writing
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = time.Now()
	switch {
	case w.armed:
		return
	case w.timer == nil:
		w.limit = slowClient(c)
		w.timer = time.AfterFunc(w.limit, c.lookAtWrite)
	default:
		w.timer.Reset(w.limit)
	}
	w.armed = true
}

func (c *Call) endWrite() {
	c.writing.mu.Lock()
	defer c.writing.mu.Unlock()
	c.writing.begun = time.Time{}
}

// lookAtWrite is called by the timer.
func (c *Call) lookAtWrite() {
	w := &c.writing
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed = !w.over && !w.begun.IsZero(); !w.armed {
		return
	}
	if left := w.limit - time.Since(w.begun); left > 0 {
		w.timer.Reset(left)
		return
	}
	c.giveUpClient()
}

// writeNow is write without a limit of time.
func (c *Call) writeNow(p []byte, flush bool) error {
	_, err := c.Writer.Write(p)
	if err == nil && flush {
		err = http.NewResponseController(c.Writer).Flush()
	}
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	c.writing.failed.Store(true)
	c.Cancel(errUnwritable)
	return err
}

func slowClient(c *Call) time.Duration {
	if c.Node == nil {
		return slowClientTimeout
	}
	return cmp.Or(c.Node.Settings().SlowClient, slowClientTimeout)
}

// giveUpClient cancels the request, and makes the current write fail. The deadline is set only now: over HTTP/2, a deadline ends the
// stream even if no write waits. It needs the lock.
func (c *Call) giveUpClient() {
	c.Site.Log.Warn("a client stopped reading; its request is cancelled", "request", c.ID)
	c.Cancel(errSlowClient)
	for _, lease := range c.writing.leases {
		lease.Release() // the write may still wait: over HTTP/2, a client can block the whole connection
	}
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(-time.Second))
}

// EndWriting keeps the timer from using the writer after the request has ended.
func (c *Call) EndWriting() {
	c.writing.mu.Lock()
	defer c.writing.mu.Unlock()
	c.writing.over = true
	if c.writing.timer != nil {
		c.writing.timer.Stop()
	}
}

// Holds notes a lease. It is released when the server stops waiting for the client.
func (c *Call) Holds(lease *supervisor.Lease) {
	c.writing.mu.Lock()
	defer c.writing.mu.Unlock()
	if c.writing.leases == nil {
		c.writing.leases = c.writing.only[:0]
	}
	c.writing.leases = append(c.writing.leases, lease)
}

// HoldsNoMore undoes holds.
func (c *Call) HoldsNoMore(lease *supervisor.Lease) {
	c.writing.mu.Lock()
	defer c.writing.mu.Unlock()
	c.writing.leases = slices.DeleteFunc(c.writing.leases, func(l *supervisor.Lease) bool { return l == lease })
}
