package api

import (
	"context"
	"io"
	"net/http"
	"time"
)

// How slowly a request's body may come: a while, and then so many bytes for each second of it. Who sends more slowly than that
// holds a connection and a buffer for nothing.
const (
	bodyPatience = time.Minute
	bodyRate     = 1 << 10
	unreadShare  = 12 // of the while, for what nobody reads: 5 seconds
)

// timely is a body that has to come at a rate. Connections whose deadlines can't be set have none.
type timely struct {
	io.Reader

	ctx       context.Context //nolint:containedctx // of the request
	stop      func() bool     // what ends the wait for more when the request's token no longer allows it; nil: nothing
	deadlines *http.ResponseController
	patience  time.Duration
	from      time.Time
	read      int64
}

func (c *call) timely(body io.Reader) *timely {
	t := &timely{Reader: body, ctx: c.r.Context(), deadlines: http.NewResponseController(c.w), patience: c.api.bodyPatience, from: time.Now()}
	if c.running != nil {
		t.stop = context.AfterFunc(t.ctx, func() { _ = t.deadlines.SetReadDeadline(time.Unix(1, 0)) })
	}
	return t
}

func (t *timely) Read(p []byte) (int, error) {
	deadline := t.from.Add(t.patience + time.Duration(t.read/bodyRate)*time.Second)
	_ = t.deadlines.SetReadDeadline(deadline) // of what has none, nothing can be asked
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.Reader.Read(p)
	t.read += int64(n)
	return n, err
}

// hurry gives a body that nobody reads to its end little time: the server waits for its end before it lets the connection go.
func (c *call) hurry() {
	if !c.read && c.r.ContentLength != 0 {
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(c.api.bodyPatience / unreadShare))
	}
}

// end lets the connection be silent again, as it is while an answer is on its way.
func (t *timely) end() {
	if t.leave() {
		_ = t.deadlines.SetReadDeadline(time.Time{})
	}
}

// leave keeps the end of the request's context from the connection, which others may use after it. It is false where that
// has ended already.
func (t *timely) leave() bool { return t.stop == nil || t.stop() }
