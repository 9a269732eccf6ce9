package fetch

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

// fault says why a request to a hub, or to a server that it redirects to, failed.
type fault struct {
	why   *Error
	again bool // the same request may succeed later
	moved move // not notMoved: the hub's file differs from its list, which has to be read again
}

// move is how a hub's file differs from what its list says.
type move uint8

const (
	notMoved move = iota
	otherTag      // the server's ETag changed during the download
	otherSize
	otherSum
	gone
)

func (f *fault) Error() string { return f.why.Message }

// Unwrap lets callers find the [*Error].
func (f *fault) Unwrap() error { return f.why }

func fatal(kind Kind, format string, args ...any) *fault {
	return &fault{why: errorf(kind, format, args...)}
}

func passing(kind Kind, format string, args ...any) *fault {
	return &fault{why: errorf(kind, format, args...), again: true}
}

func moved(how move, format string, args ...any) *fault {
	return &fault{why: errorf(Changed, format, args...), moved: how}
}

// noAnswer makes a fault of a request that got no response, or whose response broke off.
func noAnswer(ctx context.Context, h *hub, err error) *fault {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, outbound.ErrStalled) {
		return &fault{why: &Error{Kind: Internal, Message: cause.Error(), cause: cause}} // canceled on purpose
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // its text contains the URL, which may be signed
	}
	if insecure, ok := errors.AsType[*outbound.InsecureError](err); ok {
		return fatal(HubFailed, "%s: %w.", h.name(), insecure)
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	_, wrongHost := errors.AsType[x509.HostnameError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	if unknown || invalid || wrongHost || noTLS {
		return fatal(HubFailed, "No safe connection to %s: %w. Check the hub's URL, this machine's clock and its certificates.", h.name(), err)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok { // its text contains the name server's address
		return passing(HubFailed, "No address was found for %s: %s. Check the network and the hub's URL.", dns.Name, dns.Err)
	}
	return passing(HubFailed, "The connection to %s failed: %w. Check the network and the hub's URL.", h.name(), err)
}

// maxRetryAfter is the longest Retry-After that is waited for. A longer one counts as a refusal.
const maxRetryAfter = 15 * time.Minute

// refused makes a fault of a response other than a success. what names the repository or file that was requested.
func refused(h *hub, what, repo string, response *http.Response) *fault {
	own := outbound.SameOrigin(response.Request.URL, h.base)
	host := cmp.Or(response.Request.URL.Host, h.name())
	status := fmt.Sprintf("%s answered %d %s for %s", host, response.StatusCode, http.StatusText(response.StatusCode), what)
	quotesToken := func(word string) bool { return h.token != "" && strings.Contains(word, h.token) }
	if word := response.Header.Get("X-Error-Message"); word != "" && len(word) < 300 && !strings.ContainsFunc(word, filename.IsInvisible) && !quotesToken(word) {
		status += " (" + word + ")"
	}
	switch code := response.StatusCode; {
	case !own && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestedRangeNotSatisfiable:
		return passing(HubFailed, "%s, where %s redirects to.", status, h.name()) // usually a signed URL that has expired
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return denied(h, status, repo, response)
	case code == http.StatusNotFound, code == http.StatusGone:
		f := fatal(ModelNotFound, "%s: there is no such model, or no such file or revision of it. Check the spelling at %s.", status, h.page(repo))
		f.moved = gone
		f.why.Param = "model"
		return f
	case code == http.StatusRequestedRangeNotSatisfiable:
		return moved(otherSize, "%s: the file is shorter than it was.", status)
	case code == http.StatusTooManyRequests:
		return putOff(h, status, response)
	case code == http.StatusRequestTimeout, code >= 500:
		f := passing(HubFailed, "%s. That is the hub's fault: try again later.", status)
		f.why.RetryAfter = min(retryAfter(response.Header), maxRetryAfter)
		return f
	default:
		return fatal(HubFailed, "%s. Check the hub's URL: does it speak the API of huggingface.co?", status)
	}
}

func denied(h *hub, status, repo string, response *http.Response) *fault {
	remedy := "it may be gated or private, or not exist. Check the name; accept the model's terms at " + h.page(repo) +
		", and give the hub a token: `hub " + h.String() + " { token … }`, or HF_TOKEN."
	switch gated := response.Header.Get("X-Error-Code") == "GatedRepo"; {
	case h.token != "" && response.StatusCode == http.StatusUnauthorized:
		remedy = "the hub takes the token that is configured for no valid one. Make a new one at the hub."
	case h.token != "":
		remedy = "the configured token has no access to it. Accept the model's terms at " + h.page(repo) + ", or use another token."
	case gated:
		remedy = "it is gated. Accept its terms at " + h.page(repo) + ", and give the hub a token: `hub " + h.String() + " { token … }`, or HF_TOKEN."
	}
	f := fatal(Denied, "%s: %s", status, remedy)
	f.why.Param = "model"
	return f
}

func putOff(h *hub, status string, response *http.Response) *fault {
	wait := retryAfter(response.Header)
	if wait > maxRetryAfter {
		f := fatal(Busy, "%s: too many requests, and it wants %v of rest. Start the download again then; a token for %s may raise the limit.", status, wait.Round(time.Second), h.name())
		f.why.RetryAfter = wait
		return f
	}
	f := passing(Busy, "%s: too many requests. Try again later; a token for %s may raise the limit.", status, h.name())
	f.why.RetryAfter = wait
	return f
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
