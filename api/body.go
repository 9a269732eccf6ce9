package api

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
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/lmcaddy/lmcaddy/internal/http1"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// maxKept is the largest buffer that is reused by other requests, in bytes.
const maxKept = 4 << 20

// How a body's buffer grows. If the client has sent a Content-Length, the buffer grows to at most four times of what has arrived;
// otherwise by a quarter.
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

// heldBuffer has a request's body. It is reused once neither the endpoint nor an upstream request holds it; the body of an upstream
// request may still be read for a while after the request has failed.
type heldBuffer struct {
	data    []byte
	holders atomic.Int32
}

var heldBuffers = sync.Pool{New: func() any { return new(heldBuffer) }}

func holdBuffer() *heldBuffer {
	b := heldBuffers.Get().(*heldBuffer)
	b.data = b.data[:0]
	b.Retain()
	return b
}

// grow makes room for size bytes in all.
func (b *heldBuffer) grow(size int) {
	if size > cap(b.data) {
		b.data = append(make([]byte, 0, size), b.data...)
	}
}

// Retain adds a reader of the buffer.
func (b *heldBuffer) Retain() { b.holders.Add(1) }

// Release takes a reader away. The last one frees the buffer for other requests.
func (b *heldBuffer) Release() {
	if b.holders.Add(-1) == 0 && cap(b.data) <= maxKept {
		heldBuffers.Put(b)
	}
}

// memory is nil for a request without a body.
func (b *heldBuffer) memory() http1.RefCounted {
	if b == nil {
		return nil
	}
	return b
}

// body reads the request's body to its end, decodes and scans it. Only after the end does the server notice at once that the client
// disconnects. The memory is counted until the request ends.
func (c *call) body() (*jsonbody.Body, error) {
	limit := c.site.MaxBody
	if c.r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	c.claim = c.node.ClaimBody(c.payer())
	incoming := c.timely(http.MaxBytesReader(c.w, c.r.Body, limit))
	defer incoming.leave()
	decoded, decoding, err := c.decoded(incoming)
	if err != nil {
		return nil, err
	}
	if closer, ok := decoded.(io.Closer); ok {
		defer func() { _ = closer.Close() }()
	}
	c.held = holdBuffer()
	if err = c.readAll(decoded, limit, decoding > 0); err == nil {
		incoming.end()
	}
	if err != nil {
		return nil, c.unreadable(err)
	}
	c.read = true
	c.claim.Shrink(decoding)
	text := bytes.TrimPrefix(c.held.data, byteOrderMark) // which .NET's and PowerShell's clients send
	body, bad := jsonbody.Scan(text)
	if bad != nil {
		return nil, bad
	}
	if c.inspected != nil {
		c.inspected.Asked(withoutSecrets(text))
	}
	return body, nil
}

// byteOrderMark may begin a text in UTF-8.
var byteOrderMark = []byte("\ufeff")

// unreadable is the error of a body that can't be read.
func (c *call) unreadable(err error) error {
	var beyond *http.MaxBytesError
	switch {
	case errors.As(err, &beyond), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return tooLarge(c.site.MaxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.w.Header().Set("Connection", "close")
		return translate.Invalid("slow_body", "", "The request body came too slowly, or its end is missing.")
	case isRefusal(err), errors.Is(err, context.Canceled):
		return err
	default:
		return translate.Invalid("unreadable_body", "", "The request body can't be read: "+err.Error()+".")
	}
}

func tooLarge(limit int64) *translate.Error {
	return &translate.Error{
		Kind:    translate.KindTooLarge,
		Message: fmt.Sprintf("The request body is larger than %d bytes, the most that this server takes.", limit),
	}
}

// isRefusal reports whether the body is too large, or there is no memory for it.
func isRefusal(err error) bool {
	var busy *node.BusyError
	var limit *node.LimitError
	var known *translate.Error
	return errors.As(err, &busy) || errors.As(err, &limit) || errors.As(err, &known)
}

// payer is who the memory of the request's body is counted for: the owner, or the client's address if there is none.
func (c *call) payer() string {
	if owner := c.owner(); owner != "" {
		return owner
	}
	host, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		host = c.r.RemoteAddr
	}
	return "address " + host
}

// readAll reads the body into the buffer. Each part is counted before it is allocated. A body with a Content-Length is read into one
// buffer; otherwise there are several, so that a body whose end is withheld leaves no garbage.
func (c *call) readAll(from io.Reader, limit int64, isEncoded bool) error {
	told := int(max(c.r.ContentLength, 0)) + endOfBody
	size := min(told, firstPart+endOfBody)
	if err := c.claim.Grow(int64(size)); err != nil {
		return err
	}
	c.held.grow(size)
	var parts [][]byte // those that are full
	full := 0          // their bytes
	for {
		read, err := fill(from, c.held.data, size)
		c.held.data = read
		switch total := full + len(read); {
		case int64(total) > limit:
			return tooLarge(limit)
		case errors.Is(err, io.EOF):
			return c.join(parts, total, size)
		case err != nil:
			return err
		case !isEncoded && total < told: // there are no parts
			next := min(told, growth*size)
			if err := c.claim.Grow(int64(next - size)); err != nil {
				return err
			}
			size = next
			c.held.grow(size)
		default:
			parts, full = append(parts, read), total
			size = max(total/growth, firstPart)
			if err := c.claim.Grow(int64(size)); err != nil {
				return err
			}
			c.held.data = make([]byte, 0, size)
		}
	}
}

// fill reads into a buffer until it has size bytes. The capacity may be larger if the buffer was used before.
func fill(from io.Reader, buf []byte, size int) ([]byte, error) {
	for len(buf) < size {
		n, err := from.Read(buf[len(buf):size])
		if buf = buf[:len(buf)+n]; err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// join makes one buffer of the parts and the buffer, for which size bytes are counted.
func (c *call) join(parts [][]byte, total, size int) error {
	if len(parts) == 0 {
		return nil
	}
	if err := c.claim.Grow(int64(total)); err != nil {
		return err
	}
	whole := make([]byte, 0, total)
	counted := size
	for _, part := range parts {
		whole = append(whole, part...)
		counted += len(part)
	}
	c.held.data = append(whole, c.held.data...)
	c.claim.Shrink(int64(counted))
	return nil
}

// decoded undoes the body's Content-Encoding, and returns how much memory is counted for that. A reader that is a Closer has to be closed.
func (c *call) decoded(body io.Reader) (_ io.Reader, memory int64, _ error) {
	encoding := strings.ToLower(strings.TrimSpace(c.r.Header.Get("Content-Encoding")))
	switch encoding {
	case "", "identity":
		return body, 0, nil
	case "gzip", "x-gzip":
		if err := c.claim.Grow(gzipMemory); err != nil {
			return nil, 0, err
		}
		zr, err := gzip.NewReader(body)
		if err != nil {
			return nil, 0, translate.Invalid("unreadable_body", "", "The request body is not the gzip that its Content-Encoding says.")
		}
		return zr, gzipMemory, nil
	case "zstd":
		if err := c.claim.Grow(zstdMemory); err != nil {
			return nil, 0, err
		}
		zr, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(c.site.MaxBody, 1<<20))),
			zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, 0, translate.Invalid("unreadable_body", "", "The request body is not the zstd that its Content-Encoding says.")
		}
		return zr.IOReadCloser(), zstdMemory, nil
	default:
		c.w.Header().Set("Accept-Encoding", "gzip, zstd")
		return nil, 0, &translate.Error{
			Kind:    translate.KindUnsupportedEncoding,
			Message: fmt.Sprintf("The Content-Encoding %q is not known here: send the body plain, or as gzip or zstd.", encoding),
		}
	}
}
