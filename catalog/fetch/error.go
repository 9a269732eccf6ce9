package fetch

import (
	"errors"
	"fmt"
	"time"
)

// Error is why something can't be fetched. It is the only kind that the methods of [Jobs] return, but for a context's own.
type Error struct {
	Kind    Kind
	Param   string // the field of the request that is at fault: "model" or "quantization"; empty for none
	Message string // what is wrong and what to do next, as whole sentences
	// RetryAfter is when the hub says to come back; 0: it doesn't.
	RetryAfter time.Duration
	cause      error
}

// Kind classes an error by what can be done about it.
type Kind uint8

// The kinds. The statuses are a proposal.
const (
	Invalid        Kind = iota + 1 // 400: the request is wrong
	NotImplemented                 // 400 not_implemented: the request is right, but isn't served
	ModelNotFound                  // 404: neither the catalog nor the hub has it
	JobNotFound                    // 404: there is no such job
	Conflict                       // 409: not in the job's state
	Denied                         // 403: the hub wants another token, or none will do
	TooLarge                       // 400: no variant fits this machine's memory
	NoSpace                        // 507: the disk is full
	Busy                           // 429 or 503: the hub wants us to come back later
	HubFailed                      // 502: the hub can't be reached, or speaks nonsense
	Unsafe                         // 502: the hub names files that would leave the models folder
	Changed                        // 502: the hub's file isn't what its list says
	Internal                       // 500: this machine is at fault: its disk, its folders
	Cancelled                      // 409: a job that somebody has cancelled
)

// kindWords are what kinds are written down as.
var kindWords = map[Kind]string{
	Invalid: "invalid", NotImplemented: "not_implemented", ModelNotFound: "model_not_found", JobNotFound: "job_not_found",
	Conflict: "conflict", Denied: "denied", TooLarge: "too_large", NoSpace: "no_space", Busy: "busy", HubFailed: "hub_failed",
	Unsafe: "unsafe", Changed: "changed", Internal: "internal", Cancelled: "cancelled",
}

// MarshalText implements [encoding.TextMarshaler].
func (k Kind) MarshalText() ([]byte, error) { return []byte(kindWords[k]), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. A word that isn't known is no kind.
func (k *Kind) UnmarshalText(word []byte) error {
	*k = 0
	for kind, known := range kindWords {
		if known == string(word) {
			*k = kind
		}
	}
	return nil
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives what led to the error, if anything.
func (e *Error) Unwrap() error { return e.cause }

func errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), cause: errors.Unwrap(err)}
}

// about names the request's field that is at fault.
func (e *Error) about(param string) *Error {
	e.Param = param
	return e
}

// kindOf is the error's kind; Internal for an error of another type.
func kindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// asError makes any error an [*Error].
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Message: err.Error(), cause: err}
}
