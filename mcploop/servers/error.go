package servers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// ConnectionError says that an MCP server can't be used.
type ConnectionError struct {
	Message string // for clients: whole sentences, without a path, a secret, or the query of a URL
	Cause   error  // for the operator. It has no secrets of ours either, even if a server quotes them.
}

func (e *ConnectionError) Error() string { return e.Message }

func (e *ConnectionError) Unwrap() error { return e.Cause }

// UnknownError says that mcp.json has no such server.
type UnknownError struct {
	Label string
	Known []string // the labels that it has
}

func (e *UnknownError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("There is no MCP server '%s': mcp.json has none.", clip(e.Label))
	}
	return fmt.Sprintf("There is no MCP server '%s' in mcp.json. It has these: %s.", clip(e.Label), strings.Join(e.Known, ", "))
}

type (
	// notPublicError refuses an address that isn't on the Internet.
	notPublicError struct{ addr netip.Addr }
	// originError refuses a request to another origin than the server's.
	originError struct{ origin string }
	// refusedError is the server's own JSON-RPC error.
	refusedError struct {
		Code    int
		Message string
	}
	// statusError is a response that isn't a success.
	statusError struct {
		status int
		err    error
	}
	// mediaTypeError is a response that isn't MCP.
	mediaTypeError struct{ mediaType string }
	// protocolError is an answer that isn't what the protocol says.
	protocolError struct{ what string }
	// timeoutError says for how long was waited.
	timeoutError struct{ after time.Duration }
)

func (e *notPublicError) Error() string { return fmt.Sprintf("%v is not a public address", e.addr) }
func (e *originError) Error() string {
	return fmt.Sprintf("it leads to another origin, %s, which gets no request", e.origin)
}

func (e *refusedError) Error() string   { return fmt.Sprintf("error %d: %s", e.Code, clip(e.Message)) }
func (e *statusError) Error() string    { return fmt.Sprintf("HTTP status %d", e.status) }
func (e *statusError) Unwrap() error    { return e.err }
func (e *mediaTypeError) Error() string { return "it answered with " + clip(e.mediaType) }
func (e *protocolError) Error() string  { return e.what }
func (e *timeoutError) Error() string   { return fmt.Sprintf("no answer within %v", e.after) }

var (
	errLost      = errors.New("the connection was lost")
	errClosed    = errors.New("this server is shutting down")
	errUnused    = errors.New("nobody used it")
	errRetired   = errors.New("its configuration changed")
	errHung      = errors.New("it doesn't even answer a ping")
	errInput     = errors.New("the tool asks for input, which can't be given")
	errRedirects = errors.New("it redirects again and again")
	errStarve    = errors.New("it doesn't read what is sent to it")
)

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

var reasons = []struct {
	err      error
	sentence string
}{
	{errTooLong, "It sent a message of more than 4 MiB, which is not read."},
	{errFlood, "It didn't stop sending, and was disconnected."},
	{errHung, "It doesn't answer any more, and was disconnected."},
	{errRedirects, "It redirects again and again."},
	{errInput, "The tool asks for input, which can't be given."},
	{errStarve, "It doesn't read what is sent to it."},
	{errClosed, "This server is shutting down."},
	{errRetired, connectionLost},
	{errUnused, connectionLost},
	{errLost, connectionLost},
	{transport.ErrTransportClosed, connectionLost},
	{transport.ErrSessionTerminated, "It ended the session again and again."},
}

const connectionLost = "The connection was lost."

func reason(err error) string {
	if status, ok := errors.AsType[*statusError](err); ok {
		return statusReason(status.status)
	}
	if media, ok := errors.AsType[*mediaTypeError](err); ok {
		return fmt.Sprintf("It is not an MCP server: it answered with %s. Check the path of its URL.", clip(media.mediaType))
	}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return fmt.Sprintf("It answered with an error: %s.", strings.TrimSuffix(refused.Error(), "."))
	}
	if is[*originError](err) {
		return "It leads to another origin (scheme, host or port), which is not followed: use the URL that it leads to."
	}
	if protocol, ok := errors.AsType[*protocolError](err); ok {
		return fmt.Sprintf("It doesn't follow the protocol: %s.", protocol.what)
	}
	if version, ok := errors.AsType[mcp.UnsupportedProtocolVersionError](err); ok {
		return fmt.Sprintf("It speaks version %q of the protocol, which is not supported.", clip(version.Version))
	}
	if timeout, ok := errors.AsType[*timeoutError](err); ok {
		return fmt.Sprintf("It didn't answer within %v.", timeout.after)
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.sentence
		}
	}
	return networkReason(err)
}

func statusReason(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("It answered with HTTP status %d: check its headers.", status)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return fmt.Sprintf("It answered with HTTP status %d: check the path of its URL.", status)
	default:
		return fmt.Sprintf("It answered with HTTP status %d.", status)
	}
}

func networkReason(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "There is no such host: check its name."
		}
		return "The name of its host could not be resolved."
	}
	if is[*tls.CertificateVerificationError](err) || is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err) ||
		is[x509.CertificateInvalidError](err) {
		return "Its TLS certificate is not valid for its URL."
	}
	if is[tls.RecordHeaderError](err) || errors.Is(err, http.ErrSchemeMismatch) {
		return "It doesn't speak TLS: does its URL begin with http:// ?"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "The connection timed out."
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "It refused the connection: check that it is running."
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "It broke off the connection."
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "It could not be reached."
	}
	return "It doesn't answer like an MCP server."
}

// clean returns an error without URLs, whose queries may be secrets, and without long texts of the server's.
func clean(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", strings.ToLower(e.Op), e.Err)
	}
	text := err.Error()
	if len(text) > 512 || strings.Contains(text, "\n") {
		return errors.New(clip(text))
	}
	return err
}
