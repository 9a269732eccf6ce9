package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// readBuffer is as much as one read, write and flush of a stream can carry, in bytes.
	readBuffer = 32 << 10
	// writtenFirst is the size in bytes up to which a body is written before the answer is read. Every socket has room for that, so
	// the write doesn't wait for the server.
	writtenFirst = 64 << 10
	// lateAnswer is how long an answer is awaited whose request could not be written: a server may refuse a large body before it
	// has read all of it.
	lateAnswer = 100 * time.Millisecond
	// part is how many bytes of a large body are sent before the sender is told.
	part = 64 << 10
)

// ErrHeadTooLong is the error of an answer whose header is longer than the transport's MaxHead.
var ErrHeadTooLong = errors.New("the header of the answer is too long")

// conn is a connection to a server. It serves one request at a time.
type conn struct {
	net.Conn

	transport *Transport
	reader    *bufio.Reader
	quiet     quiet
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

func (c *conn) close() {
	c.closed.Do(func() {
		_ = c.Close()
		c.transport.mu.Lock()
		defer c.transport.mu.Unlock()
		delete(c.transport.open, c)
	})
}

// exchange sends a request and reads the header of the answer.
func (c *conn) exchange(ctx context.Context, rq *Request) (*http.Response, error) {
	c.stop = context.AfterFunc(ctx, c.close)
	c.left, c.written = c.transport.MaxHead, nil
	size := rq.Body.Size()
	var err error
	if c.head, err = rq.appendHead(c.head[:0], size); err != nil {
		return nil, err
	}
	c.pieces = append(c.pieces[:0], c.head)
	for _, piece := range rq.Body.Pieces {
		if len(piece) > 0 {
			c.pieces = append(c.pieces, piece)
		}
	}
	if size > writtenFirst {
		c.writeBeside(&rq.Body)
	} else if err = c.write(); err != nil { // the server may have answered nevertheless
		_ = c.SetReadDeadline(time.Now().Add(lateAnswer))
		c.written = make(chan error, 1)
		c.written <- err
	}
	resp, err := http.ReadResponse(c.reader, asked[rq.Method])
	for err == nil && resp.StatusCode < http.StatusOK && resp.StatusCode != http.StatusSwitchingProtocols { // an informational one
		resp, err = http.ReadResponse(c.reader, asked[rq.Method])
	}
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
	resp.Body = &body{from: resp.Body, conn: c, ctx: ctx, isLast: resp.Close}
	return resp, nil
}

// write writes the pieces, if possible in one system call.
func (c *conn) write() error {
	all := c.pieces
	_, err := c.pieces.WriteTo(c.Conn)
	clear(all)
	c.pieces = all[:0]
	return err
}

// writeInParts writes the pieces, and calls a function after each part.
func (c *conn) writeInParts(moving func()) error {
	all := c.pieces
	defer func() {
		clear(all)
		c.pieces = all[:0]
	}()
	for _, piece := range all {
		for len(piece) > 0 {
			n := min(len(piece), part)
			if _, err := c.Write(piece[:n]); err != nil {
				return err
			}
			moving()
			piece = piece[n:]
		}
	}
	return nil
}

// writeBeside writes the pieces while the answer is awaited, since the server may answer before it has read them all.
func (c *conn) writeBeside(b *Body) {
	memory, moving := b.Memory, b.Moving
	if memory != nil {
		memory.Retain()
	}
	written := make(chan error, 1)
	c.written = written
	go func() {
		var err error
		if moving == nil {
			err = c.write()
		} else {
			err = c.writeInParts(moving)
		}
		if memory != nil {
			memory.Release()
		}
		if err != nil {
			_ = c.SetReadDeadline(time.Now().Add(lateAnswer))
		}
		written <- err
	}()
}

// asked are requests for http.ReadResponse, which takes only the method from them.
var asked = map[string]*http.Request{http.MethodGet: {Method: http.MethodGet}, http.MethodPost: {Method: http.MethodPost}}

// limitedHead reads from a connection, and bounds the header of the answer.
type limitedHead struct{ *conn }

func (c limitedHead) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, ErrHeadTooLong
	}
	n, err := c.Conn.Read(p)
	c.left -= int64(n)
	c.got = c.got || n > 0
	return n, err
}

// cause returns why an exchange failed.
func (c *conn) cause(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded):
		c.transport.mu.Lock()
		defer c.transport.mu.Unlock()
		if c.transport.closed {
			return c.transport.Closed
		}
	}
	return err
}

// body is the body of an answer. At its end the connection is kept for other requests.
type body struct {
	from   io.ReadCloser
	conn   *conn
	ctx    context.Context //nolint:containedctx // of the request
	isLast bool            // the server closes the connection
	err    error           // why nothing more can be read; nil: it can
}

var errBodyClosed = errors.New("the body of the answer is closed")

// Read reads the answer. The error of an answer that breaks off is the cause of the context's end, if that has ended.
func (b *body) Read(p []byte) (int, error) {
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

// Close ends the answer. If it wasn't read to its end, the connection is closed, by which the server notices.
func (b *body) Close() error {
	if b.err == nil {
		b.err = errBodyClosed
		b.leave(false)
	}
	return nil
}

// leave gives the connection away.
func (b *body) leave(isWhole bool) {
	c := b.conn
	isReusable := c.stop() && isWhole && c.reader.Buffered() == 0
	if isReusable && c.written != nil { // a write that still waits for the server is ended
		_ = c.SetWriteDeadline(time.Unix(1, 0)) // one that has nothing left to write doesn't notice
		isReusable = <-c.written == nil && c.SetWriteDeadline(time.Time{}) == nil
	}
	if isReusable {
		c.transport.keep(c)
	} else {
		c.close()
	}
}
