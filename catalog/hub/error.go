package hub

import (
	"errors"
	"fmt"
	"time"
)

// Error says why something can't be downloaded. The methods of [Jobs] return no other errors, except those of contexts.
type Error struct {
	Kind    Kind
	Param   string // the request's field that is wrong: "model" or "quantization"; may be empty
	Message string // what is wrong and what to do next, in whole sentences
	// RetryAfter is the delay that the hub asked for; 0: none.
	RetryAfter time.Duration
	Cause      error
}

// Kind classifies errors by what can be done about them.
type Kind uint8

// The kinds, with the HTTP statuses that suit them.
const (
	Invalid        Kind = iota + 1 // 400: the request is wrong
	NotImplemented                 // 400 not_implemented: the request is valid, but not supported
	ModelNotFound                  // 404: neither the built-in list nor the hub has it
	JobNotFound                    // 404: there is no such job
	Conflict                       // 409: the job's state doesn't allow it
	Denied                         // 403: the hub requires a token, or another one
	TooLarge                       // 400: no variant fits this machine's memory
	NoSpace                        // 507: the disk is full
	Busy                           // 429 or 503: the hub asks to retry later
	HubFailed                      // 502: the hub can't be reached, or its answer is invalid
	Unsafe                         // 502: the hub lists files that would leave the models folder
	Changed                        // 502: a file differs from the hub's list
	Internal                       // 500: a fault of this machine, such as of its disk
	Cancelled                      // 409: the job was canceled
)

// kindWords are the kinds as text.
var kindWords = map[Kind]string{
	Invalid: "invalid", NotImplemented: "not_implemented", ModelNotFound: "model_not_found", JobNotFound: "job_not_found",
	Conflict: "conflict", Denied: "denied", TooLarge: "too_large", NoSpace: "no_space", Busy: "busy", HubFailed: "hub_failed",
	Unsafe: "unsafe", Changed: "changed", Internal: "internal", Cancelled: "cancelled",
}

// MarshalText implements [encoding.TextMarshaler].
func (k Kind) MarshalText() ([]byte, error) { return []byte(kindWords[k]), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word becomes 0.
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

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf returns an error whose message is formatted as by [fmt.Errorf], which may wrap a cause.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// About sets the request's field that is wrong.
func (e *Error) About(param string) *Error {
	e.Param = param
	return e
}

// kindOf returns the kind of an error; Internal if it has none.
func kindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// AsError converts any error to an [*Error].
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Message: err.Error(), Cause: err}
}
