package api

import (
	"cmp"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
)

// headerAfter is how long a stream's header waits for the first chunk. Until it is sent, a failure can be told by a
// status; but proxies and clients that hear nothing at all give up after a while, and a long prompt takes minutes.
const headerAfter = 2 * time.Second

// buffers are what streams are copied through.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// stream is an answer of server-sent events. Its header goes with the first event, or a while after the engine has begun
// to answer, whichever is earlier.
type stream struct {
	call   *call
	mu     sync.Mutex // the header may be sent by the timer
	timer  *time.Timer
	headed bool
	closed bool
	sent   bool          // something that the client takes for an answer
	alive  *time.Timer   // sends comments while there is nothing to tell; nil: nothing does
	every  time.Duration // after how long a silence
	last   time.Time     // when something was sent; with alive
	beats  string        // what is sent then; empty: a comment

	atFault []byte // JSON members that an error event has beside the error
}

// newStream makes an answer of events, of which nothing is sent yet. It has to be closed before the endpoint returns.
func (c *call) newStream() *stream {
	c.stream = &stream{call: c}
	return c.stream
}

// await starts the time after which the header is sent.
func (s *stream) await() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(s.call.api.headerAfter, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.headed && !s.closed {
				s.header()
				_ = s.call.write(nil, true) // what is wrong with the connection shows with the first chunk
			}
		})
	}
}

// keepAlive has a comment sent after each silence of that length: proxies and clients that hear nothing give up.
func (s *stream) keepAlive(every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive == nil {
		s.every, s.last = every, time.Now()
		s.alive = time.AfterFunc(every, s.beat)
	}
}

// beatBy makes an event of what is sent after a silence: some clients count only those as signs of life.
func (s *stream) beatBy(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beats = event
}

func (s *stream) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	silent := time.Since(s.last)
	if silent >= s.every {
		s.write([]byte(cmp.Or(s.beats, ":\n\n")))
		silent = 0
	}
	s.alive.Reset(s.every - silent)
}

// close keeps the timers from what is no longer the endpoint's.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, timer := range []*time.Timer{s.timer, s.alive} {
		if timer != nil {
			timer.Stop()
		}
	}
	s.closed = true
}

// header needs the lock.
func (s *stream) header() {
	h := s.call.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform") // no-transform: compression would hold chunks back
	h.Set("X-Accel-Buffering", "no")
	s.headed, s.call.begun = true, true
	s.call.w.WriteHeader(http.StatusOK)
}

// send writes events and flushes. That the client has gone shows elsewhere.
func (s *stream) send(events []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(events)
}

// pass writes what the client is to see of p. Choices that share a stream share its end: hence one at a time.
func (s *stream) pass(rewriter translate.Rewriter, buf *[]byte, p []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := rewriter.Append((*buf)[:0], p)
	*buf = out[:cap(out)] // it may have grown
	return s.write(out)
}

// write needs the lock.
func (s *stream) write(events []byte) bool {
	if len(events) == 0 {
		return true
	}
	if !s.headed {
		s.header()
	}
	if s.alive != nil {
		s.last = time.Now()
	}
	s.sent = s.sent || events[0] != ':' // a comment that keeps the connection alive is no answer
	return s.call.write(events, true) == nil
}

// fail tells of an error where the stream has begun: an event that the official clients raise on.
func (s *stream) fail(e *translate.Error) {
	event := s.call.dialect.Append(nil, e, s.call.id)
	if len(s.atFault) > 0 {
		event = append(append(event[:len(event)-1], ','), s.atFault...)
		event = append(event, '}')
	}
	if s.call.dialect == translate.Anthropic {
		s.send(translate.AppendNamedFrame(nil, "error", event))
		return
	}
	s.send(translate.AppendFrame(nil, event))
}

// relay passes an engine's stream on: one write and one flush for each read. An error is still to be told.
func (s *stream) relay(up *upstream, rewriter translate.Rewriter) error {
	in, out := buffers.Get().(*[]byte), buffers.Get().(*[]byte)
	defer buffers.Put(in)
	defer buffers.Put(out)
	s.await()
	for {
		n, err := up.Read(*in)
		if n > 0 && !s.pass(rewriter, out, (*in)[:n]) {
			return nil // the client has gone
		}
		if err != nil || rewriter.Cut() {
			break // whether or not it is the end: the rewriter knows if anything is missing
		}
	}
	if err := s.call.r.Context().Err(); err != nil {
		return err
	}
	s.mu.Lock()
	s.write(rewriter.Close((*out)[:0]))
	hasSent := s.sent
	s.mu.Unlock()
	fault := rewriter.Fault()
	if fault == nil {
		return nil
	}
	if hasSent {
		return fault
	}
	return retryable(fault)
}

// decode reads an engine's stream to the answer's end. A Fault is returned, and so is an error of each, which ends the reading. After the events of each read, flush is called, where
// it isn't nil.
func (u *upstream) decode(decoder translate.Decoder, each func(translate.Event) error, flush func()) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	emit := func(ev translate.Event) error {
		if fault, ok := ev.(translate.Fault); ok {
			return fault.Err
		}
		return each(ev)
	}
	if flush == nil {
		flush = func() {}
	}
	defer flush()
	for {
		n, err := u.Read(*buf)
		if fault := decoder.Feed((*buf)[:n], emit); errors.Is(fault, translate.ErrCut) {
			return nil
		} else if fault != nil {
			return fault
		}
		flush()
		if err != nil {
			break // whether or not it is the end: the decoder knows if anything is missing
		}
	}
	return decoder.Close(emit)
}
