package endpoint

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/lmcaddy/lmcaddy/internal/http1"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

const maxKept = 4 << 20 // the largest buffer that is reused by other requests, in bytes

// How a body's buffer grows: with a Content-Length, to at most four times of what has arrived; otherwise by a quarter.
const (
	firstPart = 64 << 10
	growth    = 4
	endOfBody = 512 // bytes of room in which the end of the body is found
)

// What decoding takes in addition to the body, in bytes. Windows larger than RFC 9659 allows for HTTP are refused.
const (
	gzipMemory    = 64 << 10
	maxZstdWindow = 8 << 20
	zstdMemory    = maxZstdWindow + 256<<10
)

// heldBuffer has a request's body. It is reused once neither the endpoint nor an upstream request, which may have failed, holds it.
type heldBuffer struct {
	data    []byte
	holders atomic.Int32
}

var heldBuffers = sync.Pool{New: func() any { return new(heldBuffer) }}

func (b *heldBuffer) grow(size int) {
	if size > cap(b.data) {
		b.data = append(make([]byte, 0, size), b.data...)
	}
}

func (b *heldBuffer) Retain() { b.holders.Add(1) }

// Release takes a reader away. The last one frees the buffer for other requests.
func (b *heldBuffer) Release() {
	if b.holders.Add(-1) == 0 && cap(b.data) <= maxKept {
		heldBuffers.Put(b)
	}
}

// Memory is nil for a request without a body.
func (b *heldBuffer) Memory() http1.RefCounted {
	if b == nil {
		return nil
	}
	return b
}

// Body reads the request's body to its end, decodes and scans it. Only after the end does the server notice at once that the client
// disconnects. The memory is counted until the request ends.
func (c *Call) Body() (*jsonbody.Body, error) {
	limit := c.Site.MaxBody
	if c.Request.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	c.Claim = c.Node.Access.Bodies.Claim(Payer(c))
	incoming := &c.incoming
	*incoming = timely{
		Reader: http.MaxBytesReader(c.Writer, c.Request.Body, limit), ctx: c.Request.Context(),
		deadlines: *http.NewResponseController(c.Writer), patience: c.Site.BodyPatience, from: time.Now(),
	}
	if c.Running != nil { // its token may be revoked
		incoming.stop = context.AfterFunc(incoming.ctx, func() { _ = incoming.deadlines.SetReadDeadline(time.Unix(1, 0)) })
	}
	defer incoming.leave()
	decoded, decoding, err := decoded(c, incoming)
	if err != nil {
		return nil, err
	}
	if closer, ok := decoded.(io.Closer); ok {
		defer func() { _ = closer.Close() }()
	}
	c.Held = heldBuffers.Get().(*heldBuffer)
	c.Held.data = c.Held.data[:0]
	c.Held.Retain()
	if err = readAll(c, decoded, limit, decoding > 0); err == nil {
		incoming.end()
	}
	if err != nil {
		return nil, unreadable(c, err)
	}
	c.read = true
	c.Claim.Shrink(decoding)
	text := bytes.TrimPrefix(c.Held.data, byteOrderMark) // which .NET's and PowerShell's clients send
	if c.Form != nil {
		if err := c.Claim.Grow(3 * int64(len(text))); err != nil { // its file outside of the form, without tags, and as base64
			return nil, err
		}
		made, bad := c.Form(c.Request.Header.Get("Content-Type"), text)
		if bad != nil {
			return nil, bad
		}
		text = made
	}
	body, bad := jsonbody.Scan(text)
	if bad != nil {
		return nil, bad
	}
	if c.Inspected != nil {
		c.Inspected.AddBody(withoutSecrets(text))
	}
	return body, nil
}

var byteOrderMark = []byte("\ufeff")

func unreadable(c *Call, err error) error {
	_, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	_, isBusy := errors.AsType[*access.BusyError](err)
	_, isLimit := errors.AsType[*access.LimitError](err)
	_, isKnown := errors.AsType[*translate.Error](err)
	switch {
	case isTooLarge, errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return tooLarge(c.Site.MaxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Writer.Header().Set("Connection", "close")
		return translate.Invalid("slow_body", "", "The request body came too slowly, or its end is missing.")
	case isBusy, isLimit, isKnown, errors.Is(err, context.Canceled):
		return err
	default:
		return translate.Invalid("unreadable_body", "", "The request body can't be read: "+err.Error()+".")
	}
}

func tooLarge(limit int64) *translate.Error {
	return translate.NewError(translate.KindTooLarge, "", "",
		fmt.Sprintf("The request body is larger than %d bytes, the most that this server takes.", limit))
}

// Payer is who the memory of the request's body is counted for: the owner, or the client's address if there is none.
func Payer(c *Call) string {
	if owner := c.Owner(); owner != "" {
		return owner
	}
	host, _, err := net.SplitHostPort(c.Request.RemoteAddr)
	if err != nil {
		host = c.Request.RemoteAddr
	}
	return "address " + host
}

// readAll reads the body, each part of which is counted before. A body without a Content-Length, whose end may be withheld, has several.
func readAll(c *Call, from io.Reader, limit int64, isEncoded bool) error {
	told := int(max(c.Request.ContentLength, 0)) + endOfBody
	size := min(told, firstPart+endOfBody)
	if err := c.Claim.Grow(int64(size)); err != nil {
		return err
	}
	c.Held.grow(size)
	var parts [][]byte // those that are full
	full := 0          // their bytes
	for {
		read := c.Held.data
		var err error
		for len(read) < size && err == nil { // the capacity may be larger if it was used before
			var n int
			n, err = from.Read(read[len(read):size])
			read = read[:len(read)+n]
		}
		c.Held.data = read
		switch total := full + len(read); {
		case int64(total) > limit:
			return tooLarge(limit)
		case errors.Is(err, io.EOF):
			return join(c, parts, total, size)
		case err != nil:
			return err
		case !isEncoded && total < told: // there are no parts
			next := min(told, growth*size)
			if err := c.Claim.Grow(int64(next - size)); err != nil {
				return err
			}
			size = next
			c.Held.grow(size)
		default:
			parts, full = append(parts, read), total
			size = max(total/growth, firstPart)
			if err := c.Claim.Grow(int64(size)); err != nil {
				return err
			}
			c.Held.data = make([]byte, 0, size)
		}
	}
}

// join makes one buffer of the parts and the buffer, for which size bytes are counted.
func join(c *Call, parts [][]byte, total, size int) error {
	if len(parts) == 0 {
		return nil
	}
	if err := c.Claim.Grow(int64(total)); err != nil {
		return err
	}
	whole := slices.Concat(append(parts, c.Held.data)...)
	c.Claim.Shrink(int64(size + total - len(c.Held.data)))
	c.Held.data = whole
	return nil
}

// decoded undoes the body's Content-Encoding, and returns how much memory is counted for that. A reader that is a Closer has to be closed.
func decoded(c *Call, body io.Reader) (_ io.Reader, memory int64, _ error) {
	encoding := strings.ToLower(strings.TrimSpace(c.Request.Header.Get("Content-Encoding")))
	switch encoding {
	case "", "identity":
		return body, 0, nil
	case "gzip", "x-gzip":
		if err := c.Claim.Grow(gzipMemory); err != nil {
			return nil, 0, err
		}
		zr, err := gzip.NewReader(body)
		if err != nil {
			return nil, 0, translate.Invalid("unreadable_body", "", "The request body is not the gzip that its Content-Encoding says.")
		}
		return zr, gzipMemory, nil
	case "zstd":
		if err := c.Claim.Grow(zstdMemory); err != nil {
			return nil, 0, err
		}
		zr, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(c.Site.MaxBody, 1<<20))),
			zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, 0, translate.Invalid("unreadable_body", "", "The request body is not the zstd that its Content-Encoding says.")
		}
		return zr.IOReadCloser(), zstdMemory, nil
	default:
		c.Writer.Header().Set("Accept-Encoding", "gzip, zstd")
		return nil, 0, translate.NewError(translate.KindUnsupportedEncoding, "", "",
			fmt.Sprintf("The Content-Encoding %q is not known here: send the body plain, or as gzip or zstd.", encoding))
	}
}

// ModelName is the name of the model in a body: in the first of some fields that has one; none: in "model".
func ModelName(body *jsonbody.Body, fields ...string) (string, error) {
	if fields == nil {
		fields = []string{"model"}
	}
	r := body.Fields()
	for _, field := range fields {
		if name := r.Text(field); name != "" && r.Err == nil {
			return name, nil
		}
	}
	r.Refuse(translate.Missing("model"))
	return "", r.Err
}

// How slowly a request's body may come: after bodyPatience, it must have come at bodyRate bytes a second.
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

// leave keeps the end of the request's context from the connection, which others may use; false: it has already ended.
func (t *timely) leave() bool { return t.stop == nil || t.stop() }
