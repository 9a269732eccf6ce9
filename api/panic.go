package api

import (
	"net/http"
	"runtime/debug"
)

// panicked is a panic that is passed on from one of a request's goroutines to the one that answers, where it costs one request
// and not the process. It keeps the stack that it happened on.
type panicked struct {
	fault any
	stack []byte
}

// asPanicked makes one of what was recovered. It has to be called on the stack that it happened on.
func asPanicked(fault any) *panicked {
	if p, ok := fault.(*panicked); ok {
		return p
	}
	return &panicked{fault, debug.Stack()}
}

// again has the panic go on.
func (p *panicked) again() {
	if err, ok := p.fault.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like that
		panic(err)
	}
	panic(p)
}
