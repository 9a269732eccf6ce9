package endpoint

import (
	"context"
	"io"
	"net/http"
	"time"
)

// How slowly a request's body may come: after bodyPatience, it must have come at bodyRate bytes a second. A slower client only
// occupies a connection and a buffer.
const (
	bodyPatience = time.Minute
	bodyRate     = 1 << 10
	unreadShare  = 12 // of bodyPatience, for a body that isn't read: 5 seconds
)

// timely is a body that has to come at a rate. It has no effect on connections without deadlines.
type timely struct {
	io.Reader

	ctx       context.Context //nolint:containedctx // of the request
	stop      func() bool     // keeps the end of ctx from ending a read; nil: it doesn't end one
	deadlines http.ResponseController
	patience  time.Duration
	from      time.Time
	read      int64
}

func newTimely(c *Call, body io.Reader) *timely {
	t := &c.incoming
	*t = timely{Reader: body, ctx: c.Request.Context(), deadlines: *http.NewResponseController(c.Writer), patience: c.Site.BodyPatience, from: time.Now()}
	if c.Running != nil {
		t.stop = context.AfterFunc(t.ctx, func() { _ = t.deadlines.SetReadDeadline(time.Unix(1, 0)) })
	}
	return t
}

func (t *timely) Read(p []byte) (int, error) {
	deadline := t.from.Add(t.patience + time.Duration(t.read/bodyRate)*time.Second)
	_ = t.deadlines.SetReadDeadline(deadline) // not every connection has deadlines
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.Reader.Read(p)
	t.read += int64(n)
	return n, err
}

// end removes the deadline: a connection is silent while a request is answered.
func (t *timely) end() {
	if t.leave() {
		_ = t.deadlines.SetReadDeadline(time.Time{})
	}
}

// leave keeps the end of the request's context from the connection, which other requests may use. It is false if the context has
// already ended.
func (t *timely) leave() bool { return t.stop == nil || t.stop() }
