package api

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
)

// maxHint bounds how much memory a request's own word about its length is believed for.
const maxHint = maxKept

// maxKept bounds the buffers that are kept for other requests, in bytes.
const maxKept = 4 << 20

// heldBuffer has a request's body. It is used again when nobody holds it any more: the endpoint doesn't, and no upstream
// request, which may be read for a while after it has failed.
type heldBuffer struct {
	bytes.Buffer
	holders atomic.Int32
}

var heldBuffers = sync.Pool{New: func() any { return new(heldBuffer) }}

func holdBuffer() *heldBuffer {
	b := heldBuffers.Get().(*heldBuffer)
	b.Reset()
	b.Hold()
	return b
}

// Hold says that somebody reads the buffer.
func (b *heldBuffer) Hold() { b.holders.Add(1) }

// Release says that somebody no longer does.
func (b *heldBuffer) Release() {
	if b.holders.Add(-1) == 0 && b.Cap() <= maxKept {
		heldBuffers.Put(b)
	}
}

// keeper is nil for a request without a body.
func (b *heldBuffer) keeper() supervisor.Keeper {
	if b == nil {
		return nil
	}
	return b
}

// body reads the request's body to its end, decoded, and scans it. To the end, since only then does the server notice at
// once that the client goes away.
func (c *call) body() (*translate.Body, error) {
	limit := c.api.MaxBody
	incoming := c.timely(http.MaxBytesReader(c.w, c.r.Body, limit))
	decoded, err := c.decoded(incoming)
	if err != nil {
		return nil, err
	}
	defer decoded.Close()
	buf := holdBuffer()
	c.held = buf
	buf.Grow(int(min(max(c.r.ContentLength, 0), maxHint)) + bytes.MinRead)
	if _, err = buf.ReadFrom(io.LimitReader(decoded, limit+1)); err == nil {
		incoming.end()
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), errors.Is(err, zstd.ErrDecoderSizeExceeded), int64(buf.Len()) > limit:
		return nil, &translate.Error{
			Kind:    translate.KindTooLarge,
			Message: fmt.Sprintf("The request body is larger than %d bytes, the most that this server takes.", limit),
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.w.Header().Set("Connection", "close")
		return nil, translate.Invalid("slow_body", "", "The request body came too slowly, or its end is missing.")
	case err != nil:
		return nil, translate.Invalid("unreadable_body", "", "The request body can't be read: "+err.Error()+".")
	}
	c.read = true
	body, bad := translate.Scan(buf.Bytes())
	if bad != nil {
		return nil, bad
	}
	return body, nil
}

// decoded undoes the body's Content-Encoding.
func (c *call) decoded(body io.Reader) (io.ReadCloser, error) {
	encoding := strings.ToLower(strings.TrimSpace(c.r.Header.Get("Content-Encoding")))
	switch encoding {
	case "", "identity":
		return io.NopCloser(body), nil
	case "gzip", "x-gzip":
		zr, err := gzip.NewReader(body)
		if err != nil {
			return nil, translate.Invalid("unreadable_body", "", "The request body is not the gzip that its Content-Encoding says.")
		}
		return zr, nil
	case "zstd":
		zr, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(c.api.MaxBody, 1<<20))), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, translate.Invalid("unreadable_body", "", "The request body is not the zstd that its Content-Encoding says.")
		}
		return zr.IOReadCloser(), nil
	default:
		c.w.Header().Set("Accept-Encoding", "gzip, zstd")
		return nil, &translate.Error{
			Kind:    translate.KindUnsupportedEncoding,
			Message: fmt.Sprintf("The Content-Encoding %q is not known here: send the body plain, or as gzip or zstd.", encoding),
		}
	}
}
