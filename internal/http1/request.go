package http1

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

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
