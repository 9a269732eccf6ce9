package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxIdle is how many connections are kept without a request.
	maxIdle = 64
	// drainTime is how long answers may be read further after the server has exited. What it had sent is there, and the end follows,
	// unless a process that has escaped holds the connection.
	drainTime = 10 * time.Second
)

// Transport sends requests to one server. Its exported fields mustn't change once it is used.
type Transport struct {
	Dial    func(ctx context.Context) (net.Conn, error)
	Idle    time.Duration // how long a connection is kept without a request. A server may close it earlier.
	MaxHead int64         // the maximum length of an answer's header, in bytes
	Closed  error         // what requests fail with after Close and Drain

	mu     sync.Mutex
	open   map[*conn]struct{}
	idle   []*conn     // the one that was used last at the end
	timer  *time.Timer // closes those that have been idle for long
	armed  bool
	closed bool
}

// Do sends a request, and returns the answer when its header has arrived. The body of the answer has to be read to its end or closed. It
// breaks off when ctx ends or the transport is closed, with the cause of that. A request that met a connection which the server was
// closing is sent again.
func (t *Transport) Do(ctx context.Context, rq *Request) (*http.Response, error) {
	for {
		c, err := t.conn(ctx)
		if err != nil {
			return nil, err
		}
		resp, err := c.exchange(ctx, rq)
		if err == nil {
			return resp, nil
		}
		c.stop()
		c.close()
		err = c.cause(ctx, err)
		wasClosedIdle := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
			errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
		if !c.reused || c.got || ctx.Err() != nil || !wasClosedIdle {
			return nil, err
		}
	}
}

// conn returns an idle connection, or else a new one.
func (t *Transport) conn(ctx context.Context) (*conn, error) {
	for {
		c, err := t.takeIdle()
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return t.connect(ctx)
		case time.Since(c.since) < t.Idle && c.quiet.isQuiet():
			c.reused, c.got = true, false
			return c, nil
		}
		c.close()
	}
}

func (t *Transport) takeIdle() (*conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, t.Closed
	}
	last := len(t.idle) - 1
	if last < 0 {
		return nil, nil
	}
	c := t.idle[last]
	t.idle[last] = nil
	t.idle = t.idle[:last]
	return c, nil
}

func (t *Transport) connect(ctx context.Context) (*conn, error) {
	to, err := t.Dial(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	c := &conn{Conn: to, transport: t}
	if err := c.quiet.watch(to); err != nil {
		_ = to.Close()
		return nil, err
	}
	c.reader = bufio.NewReaderSize(limitedHead{c}, readBuffer)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = to.Close()
		return nil, t.Closed
	}
	if t.open == nil {
		t.open = map[*conn]struct{}{}
	}
	t.open[c] = struct{}{}
	return c, nil
}

// keep makes a connection idle, whose answer was read to its end.
func (t *Transport) keep(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.idle) == maxIdle {
		go c.close() // it needs the lock
		return
	}
	c.since = time.Now()
	t.idle = append(t.idle, c)
	t.arm(t.Idle)
}

// arm has the idle connections looked at after a while. It needs the lock.
func (t *Transport) arm(in time.Duration) {
	switch {
	case t.armed:
		return
	case t.timer == nil:
		t.timer = time.AfterFunc(in, t.closeOld)
	default:
		t.timer.Reset(in)
	}
	t.armed = true
}

// closeOld closes the connections that have been idle for too long.
func (t *Transport) closeOld() {
	t.mu.Lock()
	now, n := time.Now(), 0
	for n < len(t.idle) && now.Sub(t.idle[n].since) >= t.Idle {
		n++
	}
	old := append([]*conn(nil), t.idle[:n]...)
	t.idle = append(t.idle[:0], t.idle[n:]...)
	t.armed = false
	if len(t.idle) > 0 {
		t.arm(t.Idle - now.Sub(t.idle[0].since))
	}
	t.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}

// Close closes all connections. Answers that are being read break off. Nothing can be sent afterwards.
func (t *Transport) Close() {
	idle, busy := t.end()
	for _, c := range append(idle, busy...) {
		c.close()
	}
}

// Drain is Close after the server has exited: what it had sent of its answers can still be read.
func (t *Transport) Drain() {
	by := time.Now().Add(drainTime)
	idle, busy := t.end()
	for _, c := range idle {
		c.close()
	}
	for _, c := range busy {
		_ = c.SetDeadline(by) // its reader closes it
	}
}

// end has nothing sent any more, and returns the connections that are open, without and with a request.
func (t *Transport) end() (idle, busy []*conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	idle = t.idle
	t.closed, t.idle = true, nil
	if t.timer != nil {
		t.timer.Stop()
	}
	for _, c := range idle {
		delete(t.open, c)
	}
	busy = slices.Collect(maps.Keys(t.open))
	t.open = nil
	return idle, busy
}

// Request is a request. Its parts may be read until the body of its answer is closed.
type Request struct {
	Method string
	Target string // the path and the query, escaped
	Host   string
	Header []Field // without Host and Content-Length
	Body   Body
}

// Field is a field of a header.
type Field struct{ Name, Value string }

// Body is the body of a request, which may be sent more than once.
type Body struct {
	Pieces [][]byte   // sent one after the other
	Memory RefCounted // the buffer that they are part of; nil: the garbage collector frees it
	Moving func()     // called, by any goroutine, each time that a part of a large body was sent; may be nil
}

// RefCounted is memory that is used again once nobody reads it. A body may be read for a while after its request has failed.
type RefCounted interface {
	Retain()  // one more reader
	Release() // one reader fewer
}

// Size returns the number of bytes.
func (b *Body) Size() int64 {
	n := 0
	for _, piece := range b.Pieces {
		n += len(piece)
	}
	return int64(n)
}

var errNotOneLine = errors.New("a field of the request's header isn't one line of text")

// appendHead appends the header of a request whose body has the given size.
func (rq *Request) appendHead(dst []byte, size int64) ([]byte, error) {
	if !isLine(rq.Target) || !isLine(rq.Host) {
		return dst, errNotOneLine
	}
	dst = append(append(append(dst, rq.Method...), ' '), rq.Target...)
	dst = append(append(append(dst, " HTTP/1.1\r\nHost: "...), rq.Host...), "\r\n"...)
	for _, f := range rq.Header {
		if !isLine(f.Value) {
			return dst, errNotOneLine
		}
		dst = append(append(append(append(dst, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	if rq.Method == http.MethodPost {
		dst = append(strconv.AppendInt(append(dst, "Content-Length: "...), size, 10), "\r\n"...)
	}
	return append(dst, "\r\n"...), nil
}

func isLine(value string) bool { return !strings.ContainsAny(value, "\r\n\x00") }
