package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// reachError says why a remote can't be reached. Its text has no address: it is shown to clients.
type reachError struct {
	told  string
	cause error
}

func (e *reachError) Error() string { return e.told }

// Unwrap returns the error of the network.
func (e *reachError) Unwrap() error { return e.cause }

// withoutURL returns an error of the network in words for people, without an address.
func (s *Server) withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	if err == nil {
		return nil
	}
	if told := explained(err); told != "" {
		return &reachError{told, err}
	}
	return err
}

// explained says what an error of the network means; empty: it says so itself.
func explained(err error) string {
	var (
		otherName x509.HostnameError
		unknown   x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		noTLS     tls.RecordHeaderError
		dns       *net.DNSError
		op        *net.OpError
	)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &noTLS):
		return "it doesn't speak TLS: its URL must begin with http://, or have another port"
	case errors.As(err, &otherName):
		return "its certificate is for another name than the one in its URL: use that name, or the option tls_pin"
	case errors.As(err, &unknown):
		return "its certificate is from an authority that isn't known here: give the option tls_ca or tls_pin"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired, or isn't valid yet"
	case errors.As(err, &invalid):
		return "its certificate isn't valid"
	case errors.As(err, &dns):
		return "its host name can't be resolved"
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return "connecting to it takes too long"
	case errors.Is(err, context.DeadlineExceeded):
		return "it takes too long to answer"
	case errors.As(err, &op):
		err = op.Err
		for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
			err = next
		}
		return err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends the connection before its answer is complete"
	case strings.Contains(err.Error(), "response headers exceeded"):
		return "the header of its answer is too long"
	case strings.Contains(err.Error(), "malformed HTTP"):
		return "it doesn't speak HTTP: the address may be that of another program"
	default:
		return ""
	}
}

type statusError struct {
	status     int
	wantsHTTPS bool // the answer says something of HTTPS
}

func (e *statusError) Error() string {
	switch {
	case e.status == http.StatusUnauthorized, e.status == http.StatusForbidden:
		return fmt.Sprintf("it refuses the key (status %d): correct the option key", e.status)
	case e.status == http.StatusBadRequest && e.wantsHTTPS:
		return "it expects TLS: its URL must begin with https://"
	case e.status >= 300 && e.status < 400:
		return fmt.Sprintf("it redirects to another address (status %d): give that one as its URL", e.status)
	default:
		return fmt.Sprintf("it answers with status %d", e.status)
	}
}

// errNotJSON is the error of an answer that is of no server of models.
var errNotJSON = errors.New("its answer isn't JSON: the address may be that of another program")

// formError is the error of an answer in JSON with a field that isn't what it is in the API.
type formError struct{ field, is string }

func (e *formError) Error() string {
	return "its answer has an unexpected form: " + e.field + " is of the type " + e.is
}

// Is reports that it is an answer of another program, too.
func (e *formError) Is(target error) bool { return target == errNotJSON }
