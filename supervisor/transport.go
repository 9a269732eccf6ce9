package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// idleTimeout is how long a connection is kept without a request. llama-server closes idle connections after 5 s. Closing them
	// first avoids failed requests.
	idleTimeout = 4 * time.Second
	// maxIdle is how many connections are kept without a request.
	maxIdle = 64
	// readBuffer is as much as one read, write and flush of a stream can carry, in bytes.
	readBuffer = 32 << 10
	// maxHead bounds the header of an answer, in bytes.
	maxHead = 1 << 20
	// writtenFirst is the size in bytes up to which a body is written before the answer is read. Every socket has room for that, so
	// the write doesn't wait for the engine.
	writtenFirst = 64 << 10
	// lateAnswer is how long an answer is awaited whose request could not be written: an engine may refuse a large body before it
	// has read all of it.
	lateAnswer = 100 * time.Millisecond
	// drainTime is how long answers may be read further after the engine has exited. What it had sent is there, and the end follows,
	// unless a process that has escaped holds the connection.
	drainTime = 10 * time.Second
)

// transport sends requests to one engine over HTTP/1.1. [http.Transport] has two goroutines for each connection, and each request changes
// between them and its own several times. That costs more than all else in a short request. Here the caller's goroutine writes
// the request and reads the answer.
type transport struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error) // as that of [http.Transport]

	mu     sync.Mutex
	open   map[*engineConn]struct{}
	idle   []*engineConn // the one that was used last at the end
	timer  *time.Timer   // closes those that have been idle for long
	armed  bool
	closed bool
}

// engineConn is a connection to an engine. It serves one request at a time.
type engineConn struct {
	net.Conn

	transport *transport
	reader    *bufio.Reader
	head      []byte      // of the request; reused
	pieces    net.Buffers // of the request; reused
	reused    bool
	got       bool        // something of the answer has arrived
	left      int64       // bytes that the header of the answer may still have
	since     time.Time   // when it became idle
	stop      func() bool // keeps the end of the request's context from closing it
	written   chan error  // the end of a write that goes on beside the answer; nil: there is none
	closed    sync.Once
}

var errHeadTooLong = fmt.Errorf("the header of the engine's answer is longer than %d bytes", maxHead)

// request is what an engine is asked.
type request struct {
	method, path string
	key          string // of the engine
	body         Payload
}

// do sends a request, and returns the answer when its header has arrived. The body of the answer has to be read to its end or closed. It breaks
// off when ctx ends or the transport is closed. A request that met a connection which the engine was closing is sent again.
func (t *transport) do(ctx context.Context, rq request) (*http.Response, error) {
	for {
		c, err := t.conn(ctx)
		if err != nil {
			return nil, err
		}
		resp, err := c.exchange(ctx, &rq)
		if err == nil {
			return resp, nil
		}
		c.stop()
		c.close()
		if err = c.cause(ctx, err); !c.reused || c.got || ctx.Err() != nil || !wasClosedIdle(err) {
			return nil, err
		}
	}
}

// wasClosedIdle reports whether a request may have failed because the engine was closing an idle connection.
func wasClosedIdle(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// conn returns an idle connection, or else a new one.
func (t *transport) conn(ctx context.Context) (*engineConn, error) {
	for {
		c, err := t.takeIdle()
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return t.connect(ctx)
		case time.Since(c.since) < idleTimeout:
			c.reused, c.got = true, false
			return c, nil
		}
		c.close()
	}
}

func (t *transport) takeIdle() (*engineConn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errEnded
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

func (t *transport) connect(ctx context.Context) (*engineConn, error) {
	conn, err := t.dial(ctx, "", "")
	if err != nil {
		return nil, err
	}
	c := &engineConn{Conn: conn, transport: t}
	c.reader = bufio.NewReaderSize(limitedHead{c}, readBuffer)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = conn.Close()
		return nil, errEnded
	}
	if t.open == nil {
		t.open = map[*engineConn]struct{}{}
	}
	t.open[c] = struct{}{}
	return c, nil
}

// keep makes a connection idle, whose answer was read to its end.
func (t *transport) keep(c *engineConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.idle) == maxIdle {
		go c.close() // it needs the lock
		return
	}
	c.since = time.Now()
	t.idle = append(t.idle, c)
	t.arm(idleTimeout)
}

// arm has the idle connections looked at after a while. It needs the lock.
func (t *transport) arm(in time.Duration) {
	switch {
	case t.armed:
		return
	case t.timer == nil:
		t.timer = time.AfterFunc(in, t.closeIdle)
	default:
		t.timer.Reset(in)
	}
	t.armed = true
}

// closeIdle closes the connections that have been idle for too long.
func (t *transport) closeIdle() {
	t.mu.Lock()
	now, n := time.Now(), 0
	for n < len(t.idle) && now.Sub(t.idle[n].since) >= idleTimeout {
		n++
	}
	old := append([]*engineConn(nil), t.idle[:n]...)
	t.idle = append(t.idle[:0], t.idle[n:]...)
	t.armed = false
	if len(t.idle) > 0 {
		t.arm(idleTimeout - now.Sub(t.idle[0].since))
	}
	t.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}

// close closes all connections. Answers that are being read break off. Nothing can be sent afterwards.
func (t *transport) close() {
	idle, busy := t.end()
	for _, c := range append(idle, busy...) {
		c.close()
	}
}

// drain is close after the engine has exited: what it had sent of its answers can still be read.
func (t *transport) drain() {
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
func (t *transport) end() (idle, busy []*engineConn) {
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

func (t *transport) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

func (c *engineConn) close() {
	c.closed.Do(func() {
		_ = c.Close()
		c.transport.mu.Lock()
		defer c.transport.mu.Unlock()
		delete(c.transport.open, c)
	})
}

// exchange sends a request and reads the header of the answer.
func (c *engineConn) exchange(ctx context.Context, rq *request) (*http.Response, error) {
	c.stop = context.AfterFunc(ctx, c.close)
	c.left, c.written = maxHead, nil
	size := rq.body.Size()
	c.head = rq.appendHead(c.head[:0], size)
	c.pieces = append(c.pieces[:0], c.head)
	for _, piece := range rq.body.Pieces {
		if len(piece) > 0 {
			c.pieces = append(c.pieces, piece)
		}
	}
	if size <= writtenFirst {
		if err := c.write(); err != nil {
			return nil, err
		}
	} else {
		c.writeBeside(rq.body.Memory)
	}
	resp, err := c.readHead(rq.method)
	if err != nil {
		if c.written != nil {
			c.close() // which ends the write
			failed := <-c.written
			wasEnded := errors.Is(failed, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) // by that
			if failed != nil && !wasEnded && ctx.Err() == nil && !c.got {
				err = failed
			}
		}
		return nil, err
	}
	c.left = math.MaxInt64
	resp.Body = &engineBody{from: resp.Body, conn: c, ctx: ctx, isLast: resp.Close}
	return resp, nil
}

// appendHead appends the header of a request. Its host doesn't matter, since the connection is to the engine.
func (rq *request) appendHead(dst []byte, size int64) []byte {
	dst = append(append(append(dst, rq.method...), ' '), rq.path...)
	dst = append(dst, " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "...)
	dst = append(append(dst, rq.key...), "\r\n"...)
	if rq.method == http.MethodPost {
		dst = append(dst, "Content-Type: application/json\r\nContent-Length: "...)
		dst = append(strconv.AppendInt(dst, size, 10), "\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// write writes the pieces, if possible in one system call.
func (c *engineConn) write() error {
	all := c.pieces
	_, err := c.pieces.WriteTo(c.Conn)
	clear(all)
	c.pieces = all[:0]
	return err
}

// writeBeside writes the pieces while the answer is awaited, since the engine may answer before it has read them all.
func (c *engineConn) writeBeside(memory RefCounted) {
	if memory != nil {
		memory.Retain()
	}
	written := make(chan error, 1)
	c.written = written
	go func() {
		err := c.write()
		if memory != nil {
			memory.Release()
		}
		if err != nil {
			_ = c.SetReadDeadline(time.Now().Add(lateAnswer))
		}
		written <- err
	}()
}

// readHead reads the header of the answer. Informational ones before it are skipped.
func (c *engineConn) readHead(method string) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(c.reader, asked[method])
		if err != nil || resp.StatusCode >= http.StatusOK || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, err
		}
	}
}

// asked are requests for http.ReadResponse, which takes only the method from them.
var asked = map[string]*http.Request{http.MethodGet: {Method: http.MethodGet}, http.MethodPost: {Method: http.MethodPost}}

// limitedHead reads from a connection, and bounds the header of the answer.
type limitedHead struct{ *engineConn }

func (c limitedHead) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errHeadTooLong
	}
	n, err := c.Conn.Read(p)
	c.left -= int64(n)
	c.got = c.got || n > 0
	return n, err
}

// cause returns why an exchange failed.
func (c *engineConn) cause(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case (errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded)) && c.transport.isClosed():
		return errEnded
	default:
		return err
	}
}

// engineBody is the body of an engine's answer. At its end the connection is kept for other requests.
type engineBody struct {
	from   io.ReadCloser
	conn   *engineConn
	ctx    context.Context //nolint:containedctx // of the request
	isLast bool            // the engine closes the connection
	err    error           // why nothing more can be read; nil: it can
}

var errBodyClosed = errors.New("the body of the answer is closed")

// Read reads the answer. The error of an answer that breaks off is the cause of the context's end, if that has ended.
func (b *engineBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.from.Read(p)
	if err == nil {
		return n, nil
	}
	if b.err = err; !errors.Is(err, io.EOF) {
		b.err = b.conn.cause(b.ctx, err)
	}
	b.leave(errors.Is(err, io.EOF) && !b.isLast)
	return n, b.err
}

// Close ends the answer. If it wasn't read to its end, the connection is closed, by which the engine notices.
func (b *engineBody) Close() error {
	if b.err == nil {
		b.err = errBodyClosed
		b.leave(false)
	}
	return nil
}

// leave gives the connection away.
func (b *engineBody) leave(isWhole bool) {
	c := b.conn
	isOpen := c.stop()
	if isWhole && isOpen && c.reader.Buffered() == 0 && c.isWritten() {
		c.transport.keep(c)
		return
	}
	c.close()
}

// isWritten reports whether the whole request was written. A write that still waits for the engine is ended.
func (c *engineConn) isWritten() bool {
	if c.written == nil {
		return true
	}
	_ = c.SetWriteDeadline(time.Unix(1, 0)) // a write that has nothing left to write doesn't notice
	return <-c.written == nil && c.SetWriteDeadline(time.Time{}) == nil
}
