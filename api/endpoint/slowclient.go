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

const slowClientTimeout = time.Minute // how long a client may read nothing of its answer, unless the settings say otherwise

const bodyPiece = 64 << 10 // the number of bytes of an answer in one piece that a client has to read within that time

// buffered is how many bytes after a flush net/http's server takes without waiting for the client; over HTTP/3, it takes none.
const buffered = 2 << 10

var errSlowClient = errors.New("the client stopped reading")

// client is who a call writes to. A write that takes too long cancels the request. The timer runs on between two quick writes.
type client struct {
	call   *Call
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

var errUnwritable = errors.New("the client can't be written to")

// write writes to the client, and flushes if flush is set, one call at a time. An error has cancelled the request.
func (w *client) write(p []byte, flush bool) error {
	if !flush && len(p) <= buffered && w.call.Request.ProtoMajor < 3 {
		return w.writeNow(p, false)
	}
	w.begin()
	defer w.end()
	return w.writeNow(p, flush)
}

func (w *client) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = time.Now()
	switch {
	case w.armed:
		return
	case w.timer == nil:
		if w.limit = slowClientTimeout; w.call.Node != nil {
			w.limit = cmp.Or(w.call.Node.Settings().SlowClient, slowClientTimeout)
		}
		w.timer = time.AfterFunc(w.limit, w.check)
	default:
		w.timer.Reset(w.limit)
	}
	w.armed = true
}

func (w *client) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = time.Time{}
}

// check is called by the timer. A write that takes too long fails, and its request is cancelled.
func (w *client) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed = !w.over && !w.begun.IsZero(); !w.armed {
		return
	}
	if left := w.limit - time.Since(w.begun); left > 0 {
		w.timer.Reset(left)
		return
	}
	w.call.Site.Log.Warn("a client stopped reading; its request is cancelled", "request", w.call.ID)
	w.call.Cancel(errSlowClient)
	for _, lease := range w.leases {
		lease.Release() // the write may still wait: over HTTP/2, a client can block the whole connection
	}
	// The deadline is set only now: over HTTP/2, one ends the stream even if no write waits.
	_ = http.NewResponseController(w.call.Writer).SetWriteDeadline(time.Now().Add(-time.Second))
}

func (w *client) writeNow(p []byte, flush bool) error {
	_, err := w.call.Writer.Write(p)
	if err == nil && flush {
		err = http.NewResponseController(w.call.Writer).Flush()
	}
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	w.failed.Store(true)
	w.call.Cancel(errUnwritable)
	return err
}

// Close keeps the timer from using the writer after the request has ended.
func (w *client) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

// Hold notes a lease. It is released when the server stops waiting for the client.
func (w *client) Hold(lease *supervisor.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leases == nil {
		w.leases = w.only[:0]
	}
	w.leases = append(w.leases, lease)
}

func (w *client) Unhold(lease *supervisor.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leases = slices.DeleteFunc(w.leases, func(l *supervisor.Lease) bool { return l == lease })
}
