package api

import (
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

	deadlines *http.ResponseController
	patience  time.Duration
	from      time.Time
	read      int64
}

func (c *call) timely(body io.Reader) *timely {
	return &timely{Reader: body, deadlines: http.NewResponseController(c.w), patience: c.api.bodyPatience, from: time.Now()}
}

func (t *timely) Read(p []byte) (int, error) {
	deadline := t.from.Add(t.patience + time.Duration(t.read/bodyRate)*time.Second)
	_ = t.deadlines.SetReadDeadline(deadline) // of what has none, nothing can be asked
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
func (t *timely) end() { _ = t.deadlines.SetReadDeadline(time.Time{}) }
