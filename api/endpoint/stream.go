package endpoint

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

const (
	headerAfter = 2 * time.Second  // how long a stream's header, after which an error has no status, waits for the engine's first chunk
	endAfter    = time.Millisecond // how long the end of an answer waits for the end of the call, which sends it
	// defaultKeepAlive is how long a stream may be silent, also before the engine answers. Proxies give up after 30 to 60 seconds.
	defaultKeepAlive = 15 * time.Second
)

// Buffers are used to copy streams.
var Buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// PutBuffer gives back a buffer that was written. If a write failed, it isn't used again: over HTTP/2, it may still be being sent.
func (w *client) PutBuffer(buf *[]byte) {
	if !w.failed.Load() {
		Buffers.Put(buf)
	}
}

// Stream is an answer of server-sent events, or of lines of JSON. Its header comes with them, or some time after the engine's beginning.
type Stream struct {
	call   *Call
	mu     sync.Mutex  // the header may be sent by the timer
	timer  *time.Timer // calls wake when something is due, or before
	headed bool
	closed bool
	Sent   bool      // something that belongs to an answer
	last   time.Time // when something was sent
	headBy time.Time // when the header is sent at the latest; zero: the engine hasn't begun to answer
	late   bool      // the end of the answer is written, and waits for the timer to be flushed

	AtFault []byte // further JSON members of an error event
}

// NewStream begins a stream, of which nothing is sent yet. It has to be closed before the endpoint returns.
//
// From now on a comment or a ping is sent after each silence of Config.KeepAlive, since proxies and clients give up on silent
// connections. The first one sends the status 200, so a later failure is an event.
func (c *Call) NewStream() *Stream {
	s := &Stream{call: c, last: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(c.Site.KeepAlive, s.wake)
	c.Stream = s
	return s
}

// Await says that the engine has begun to answer. The header is sent some time later.
func (s *Stream) Await() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.headBy.IsZero() {
		return
	}
	now := time.Now()
	s.headBy = now.Add(s.call.Site.HeaderAfter)
	s.timer.Reset(s.due(now))
}

// due is how long nothing has to be done. It needs the lock.
func (s *Stream) due(now time.Time) time.Duration {
	next := s.last.Add(s.call.Site.KeepAlive)
	if !s.headed && !s.headBy.IsZero() && s.headBy.Before(next) {
		next = s.headBy
	}
	return next.Sub(now)
}

// wake sends the header, or what waits for the timer, and breaks a silence that was long enough.
func (s *Stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := time.Now()
	isDue := !s.headed && !s.headBy.IsZero() && !now.Before(s.headBy)
	if isDue {
		s.header()
	}
	if isDue || s.late {
		s.late = false
		_ = s.call.Client.write(nil, true) // the next chunk will fail, too
	}
	if now.Sub(s.last) >= s.call.Site.KeepAlive {
		s.put([]byte(s.call.Dialect.Stream.KeepAlive))
	}
	s.timer.Reset(s.due(now))
}

// Close stops the timer.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.closed = true
}

// header sends the header. It needs the lock.
func (s *Stream) header() {
	h := s.call.Writer.Header()
	h.Set("Content-Type", s.call.Dialect.Stream.ContentType)
	h.Set("Cache-Control", "no-cache, no-transform") // no-transform: compression would hold chunks back
	h.Set("X-Accel-Buffering", "no")
	s.headed, s.call.Begun = true, true
	s.call.Ledger.Summary.Status, s.call.Ledger.Summary.Streamed = http.StatusOK, true
	s.call.Writer.WriteHeader(http.StatusOK)
}

// Send writes events and flushes. It tells whether they are part of an answer, which a comment of an engine isn't.
func (s *Stream) Send(events []byte) (isAnswer bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(events) == 0 {
		return false
	}
	isAnswer = events[0] != ':'
	s.Sent = s.Sent || isAnswer
	s.put(events)
	return isAnswer
}

// put writes and flushes. It needs the lock.
func (s *Stream) put(p []byte) {
	if !s.headed {
		s.header()
	}
	s.last = time.Now()
	end := s.call.Dialect.Stream.End // sent together with the end of the body, when the call returns
	s.late = !s.headBy.IsZero() && end != nil && bytes.HasSuffix(p, end)
	_ = s.call.Client.write(p, !s.late) // which has cancelled the request if it failed
	if s.late {
		s.timer.Reset(endAfter)
	}
}

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
