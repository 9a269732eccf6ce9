package endpoint

import (
	"net/http"
	"runtime/debug"
)

// Panic is a panic in one of a request's goroutines, on its way to the one that answers, where it ends one request and not the
// process. It has the stack of the panic.
type Panic struct {
	Fault any
	stack []byte
}

// AsPanic wraps what was recovered. It has to be called on the stack of the panic.
func AsPanic(fault any) *Panic {
	if p, ok := fault.(*Panic); ok {
		return p
	}
	return &Panic{fault, debug.Stack()}
}

// Again continues the panic.
func (p *Panic) Again() {
	if err, ok := p.Fault.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like that
		panic(err)
	}
	panic(p)
}
