package supervisor

import (
	"context"
	"errors"
	"io"
	"time"
)

// exchange is one request on its way through an engine.
type exchange struct {
	pulse  *pulse
	lease  *Lease
	ctx    context.Context // of who asks
	tokens int             // that its prompt can have

	// Of the pulse's lock:
	waits  bool
	since  time.Time // its own last byte
	paced  bool      // its answer has begun with other things than progress: no pace is to be had any more
	pace   Pace      // as last told
	ended  bool      // the answer came to its end
	broken bool      // it broke off, and not by the client
}

// wait says that the exchange waits for bytes. While its client is slow it doesn't.
func (x *exchange) wait() {
	u := x.pulse
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waitsFor(x)
}

// got says how a wait ended. Comments aren't progress: an engine sends them while its loop hangs.
func (x *exchange) got(piece []byte, err error) {
	u := x.pulse
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waitsNoMore(x)
	if len(piece) > 0 && piece[0] != ':' {
		u.progress()
		u.measure(x, piece)
	}
	if errors.Is(err, io.EOF) {
		x.ended = true
	} else if err != nil {
		x.breaks()
	}
}

// failed says that no answer has come. The transport's error is io.EOF, too, where the engine closed the connection.
func (x *exchange) failed() {
	u := x.pulse
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waitsNoMore(x)
	x.breaks()
}

// breaks needs the lock. An exchange that its client has ended isn't broken.
func (x *exchange) breaks() { x.broken = x.ctx.Err() == nil }

// answered says that the header of an answer has come.
func (x *exchange) answered() { x.got([]byte{0}, nil) }

// end says that nothing more is read. One that broke off stays, since it may be why the engine has ended.
func (x *exchange) end() {
	u := x.pulse
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waitsNoMore(x)
	if x.broken || (!x.ended && u.hasBroken(x.lease)) {
		return
	}
	delete(u.exchanges, x)
	if !x.ended && u.ctx.Err() == nil {
		if !u.left {
			u.leftTokens = 0
		}
		u.leftTokens += x.tokens
		u.left, u.leftAt = true, time.Now()
		u.arm(lookAfter)
	}
}
