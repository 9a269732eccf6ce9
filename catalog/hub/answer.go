package hub

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

// Difference is how a hub's file differs from what its list says.
type Difference uint8

// The differences.
const (
	NoDifference Difference = iota
	OtherTag                // the server's ETag changed during the download
	OtherSize
	OtherSum
	gone
)

// Temporary returns an error after which the same request may succeed.
func Temporary(kind Kind, format string, args ...any) *Error {
	e := Errorf(kind, format, args...)
	e.Retry = true
	return e
}

// Differs returns the error of a file that isn't as its hub's list says.
func Differs(how Difference, format string, args ...any) *Error {
	e := Errorf(Changed, format, args...)
	e.Difference = how
	return e
}

// NoAnswer returns the error of a request that got no response, or whose response broke off.
func NoAnswer(ctx context.Context, h *Hub, err error) *Error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, outbound.ErrStalled) {
		return &Error{Kind: Internal, Message: cause.Error(), Cause: cause} // canceled on purpose
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // its text contains the URL, which may be signed
	}
	if insecure, ok := errors.AsType[*outbound.InsecureError](err); ok {
		return Errorf(HubFailed, "%s: %w.", h.Name(), insecure)
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, wrongHost := errors.AsType[x509.HostnameError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	if unknown || invalid || wrongHost || noTLS {
		return Errorf(HubFailed, "No safe connection to %s: %w. Check the hub's URL, this machine's clock and its certificates.",
			h.Name(), err)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok { // its text contains the name server's address
		return Temporary(HubFailed, "No address was found for %s: %s. Check the network and the hub's URL.", dns.Name, dns.Err)
	}
	return Temporary(HubFailed, "The connection to %s failed: %w. Check the network and the hub's URL.", h.Name(), err)
}

// maxRetryAfter is the longest Retry-After that is waited for. A longer one counts as a refusal.
const maxRetryAfter = 15 * time.Minute

// Refused returns the error of a response other than a success. what names the repository or file that was requested.
func Refused(h *Hub, what, repo string, response *http.Response) *Error {
	own := outbound.SameOrigin(response.Request.URL, h.Base)
	host := cmp.Or(response.Request.URL.Host, h.Name())
	status := fmt.Sprintf("%s answered %d %s for %s", host, response.StatusCode, http.StatusText(response.StatusCode), what)
	word := response.Header.Get("X-Error-Message")
	quotesToken := h.token != "" && strings.Contains(word, h.token)
	if word != "" && len(word) < 300 && !strings.ContainsFunc(word, filename.IsInvisible) && !quotesToken {
		status += " (" + word + ")"
	}
	switch code := response.StatusCode; {
	case !own && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestedRangeNotSatisfiable:
		return Temporary(HubFailed, "%s, where %s redirects to.", status, h.Name()) // usually a signed URL that has expired
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return denied(h, status, repo, response)
	case code == http.StatusNotFound, code == http.StatusGone:
		f := Errorf(ModelNotFound, "%s: there is no such model, or no such file or revision of it. Check the spelling at %s.", status,
			h.Page(repo))
		f.Difference = gone
		f.Param = "model"
		return f
	case code == http.StatusRequestedRangeNotSatisfiable:
		return Differs(OtherSize, "%s: the file is shorter than it was.", status)
	case code == http.StatusTooManyRequests:
		wait := retryAfter(response.Header)
		f := Temporary(Busy, "%s: too many requests. Try again later; a token for %s may raise the limit.", status, h.Name())
		if wait > maxRetryAfter {
			f = Errorf(Busy, "%s: too many requests, and it wants %v of rest. Start the download again then; a token for %s may raise "+
				"the limit.", status, wait.Round(time.Second), h.Name())
		}
		f.RetryAfter = wait
		return f
	case code == http.StatusRequestTimeout, code >= 500:
		f := Temporary(HubFailed, "%s. That is the hub's fault: try again later.", status)
		f.RetryAfter = min(retryAfter(response.Header), maxRetryAfter)
		return f
	default:
		return Errorf(HubFailed, "%s. Check the hub's URL: does it speak the API of huggingface.co?", status)
	}
}

func denied(h *Hub, status, repo string, response *http.Response) *Error {
	remedy := "it may be gated or private, or not exist. Check the name; accept the model's terms at " + h.Page(repo) +
		", and give the hub a token: `hub " + h.String() + " { token … }`, or HF_TOKEN."
	switch gated := response.Header.Get("X-Error-Code") == "GatedRepo"; {
	case h.token != "" && response.StatusCode == http.StatusUnauthorized:
		remedy = "the hub takes the token that is configured for no valid one. Make a new one at the hub."
	case h.token != "":
		remedy = "the configured token has no access to it. Accept the model's terms at " + h.Page(repo) + ", or use another token."
	case gated:
		remedy = "it is gated. Accept its terms at " + h.Page(repo) +
			", and give the hub a token: `hub " + h.String() + " { token … }`, or HF_TOKEN."
	}
	return Errorf(Denied, "%s: %s", status, remedy).About("model")
}

// retryAfter reads the Retry-After header, which holds seconds or a date. It returns 0 if there is none.
func retryAfter(header http.Header) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// Error says why something can't be downloaded. The methods of [Jobs] return no other errors, except those of contexts.
type Error struct {
	Kind    Kind
	Param   string // the request's field that is wrong: "model" or "quantization"; may be empty
	Message string // what is wrong and what to do next, in whole sentences
	// RetryAfter is the delay that the hub asked for; 0: none.
	RetryAfter time.Duration
	Cause      error

	// Of a request to a hub, or to a server that it redirects to:
	Retry      bool       // the same one may succeed later
	Difference Difference // if there is one, the hub's list has to be read again
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
