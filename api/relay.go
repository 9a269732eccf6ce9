package api

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

const (
	// headerAfter is how long a stream's header waits for the first chunk once the engine has begun. Until it is sent, a
	// failure can be told by a status.
	headerAfter = 2 * time.Second
	// defaultKeepAlive is how long a stream may be silent, from the request's acceptance on: through the queue, a load and a
	// long prompt. Proxies give up after 30 to 60 seconds.
	defaultKeepAlive = 15 * time.Second
)

// buffers are what streams are copied through.
var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// stream is an answer of server-sent events. Its header goes with the first event, a while after the engine has begun to
// answer, or with the first sign of life, whichever is earliest.
type stream struct {
	call   *call
	mu     sync.Mutex // the header may be sent by the timer
	timer  *time.Timer
	headed bool
	closed bool
	sent   bool        // something that the client takes for an answer
	alive  *time.Timer // sends a sign of life after each silence
	last   time.Time   // when something was sent

	atFault []byte // JSON members that an error event has beside the error
}

// newStream makes an answer of events, of which nothing is sent yet. It has to be closed before the endpoint returns.
//
// From now on each silence of Config.KeepAlive is broken by a sign of life: proxies and clients that hear nothing give up. With
// the first one the status is 200, so that a failure that comes later is told by an event.
func (c *call) newStream() *stream {
	s := &stream{call: c, last: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive = time.AfterFunc(c.api.KeepAlive, s.beat)
	c.stream = s
	return s
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

// beat sends a sign of life if the stream has been silent for long enough: a comment, which every client skips. In the
// Messages API there is an event for it, and some of its clients count only events.
func (s *stream) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	every := s.call.api.KeepAlive
	silent := time.Since(s.last)
	if silent >= every {
		sign := comment
		if s.call.dialect == anthropicDialect {
			sign = anthropic.Ping
		}
		s.put([]byte(sign))
		silent = 0
	}
	s.alive.Reset(every - silent)
}

const comment = ":\n\n"

// close keeps the timers from what is no longer the endpoint's.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.alive.Stop()
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
func (s *stream) pass(rewriter wire.Rewriter, buf *[]byte, p []byte) bool {
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
	s.sent = s.sent || events[0] != ':' // an engine's comment is no answer
	return s.put(events)
}

// put writes what may be no answer. It needs the lock.
func (s *stream) put(p []byte) bool {
	if !s.headed {
		s.header()
	}
	s.last = time.Now()
	return s.call.write(p, true) == nil
}

// fail tells of an error where the stream has begun: an event that the official clients raise on.
func (s *stream) fail(e *translate.Error) {
	event := s.call.dialect.AppendError(nil, e, s.call.id)
	if len(s.atFault) > 0 {
		event = append(append(event[:len(event)-1], ','), s.atFault...)
		event = append(event, '}')
	}
	if s.call.dialect == anthropicDialect {
		s.send(anthropic.AppendNamedFrame(nil, "error", event))
		return
	}
	s.send(jsonbody.AppendFrame(nil, event))
}

// relay passes an engine's stream on: one write and one flush for each read. An error is still to be told.
func (s *stream) relay(up *upstream, rewriter wire.Rewriter) error {
	in, out := buffers.Get().(*[]byte), buffers.Get().(*[]byte)
	defer buffers.Put(in)
	defer buffers.Put(out)
	s.await()
	for {
		n, err := up.Read(*in)
		if n > 0 && !s.pass(rewriter, out, (*in)[:n]) {
			return s.call.r.Context().Err() // the client has disconnected
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
// it isn't nil. Beside what the decoder makes, each sees when the first token came, and at the end how fast the others did,
// where the engine doesn't say it.
func (u *upstream) decode(decoder translate.Decoder, each func(translate.Event) error, flush func()) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	watch := stopwatch{began: time.Now()}
	emit := func(ev translate.Event) error {
		if fault, ok := ev.(translate.Fault); ok {
			if err := watch.tell(each); err != nil {
				return err
			}
			return fault.Err
		}
		if _, ok := ev.(translate.Finish); ok {
			if err := watch.tell(each); err != nil {
				return err
			}
		}
		if watch.note(ev) {
			if err := each(translate.FirstToken{After: u.call.sinceArrival()}); err != nil {
				return err
			}
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
