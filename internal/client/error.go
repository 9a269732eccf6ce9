package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// DownError says that no server accepts connections at an address.
type DownError struct {
	Address string
	Proxy   string // through which it was asked; empty: none
	Reason  error
}

func (e *DownError) Error() string {
	if e.Proxy != "" {
		return fmt.Sprintf("the proxy %s of this environment, through which %s is asked, can't be reached: %v", e.Proxy, e.Address,
			e.reason())
	}
	return fmt.Sprintf("no server answers at %s: %v", e.Address, e.reason())
}

// reason is the last cause, without what was called to connect.
func (e *DownError) reason() error {
	if unknown, ok := errors.AsType[*net.DNSError](e.Reason); ok && unknown.IsNotFound {
		return fmt.Errorf("there is no machine of the name %s", unknown.Name)
	}
	if cause, ok := errors.AsType[syscall.Errno](e.Reason); ok {
		return cause
	}
	return e.Reason
}

// Unwrap returns the reason.
func (e *DownError) Unwrap() error { return e.Reason }

// SilentError says that a server accepts connections, and doesn't answer.
type SilentError struct {
	Address string
	After   time.Duration
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("the server at %s accepts connections, and has not answered for %v", e.Address, e.After)
}

// Error is an error response of the server.
type Error struct {
	Status        int
	Type, Code    string // for programs; may be empty
	Message, Hint string // for people; the client adds the hint, which may be empty
}

// Error returns the message without characters that control a terminal: it may have words of a hub's, or of a stranger's server.
func (e *Error) Error() string {
	message := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, e.Message)
	if e.Hint == "" {
		return message
	}
	return strings.TrimRight(message, ". ") + ": " + e.Hint
}

// IsUnknownEndpoint reports whether the server doesn't know what was asked for at all, as one that is older than this program.
func (e *Error) IsUnknownEndpoint() bool {
	return (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) &&
		strings.HasPrefix(e.Message, "Unexpected endpoint or method.")
}

// maxRefusal bounds the bytes read of an error response, and maxQuoted those shown of one that isn't from the API.
const (
	maxRefusal = 1 << 20
	maxQuoted  = 200
)

// Fault is an error in the form of the API, in a response or in a stream.
type Fault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Code    string `json:"code"`
}

// Err returns the fault as an error.
func (f Fault) Err() error { return &Error{Type: f.Type, Code: f.Code, Message: f.Message} }

func refusal(resp *http.Response, address string, hasToken bool) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // a part of the body will do
	var answer struct {
		Error Fault `json:"error"`
	}
	e := &Error{Status: resp.StatusCode}
	if json.Unmarshal(body, &answer) == nil && answer.Error.Message != "" {
		e.Type, e.Code, e.Message = answer.Error.Type, answer.Error.Code, answer.Error.Message
	} else {
		e.Message = foreign(address, resp.StatusCode, body)
	}
	if resp.StatusCode == http.StatusUnauthorized {
		e.Hint = "check --token or LM_API_TOKEN"
		if !hasToken && e.Code != "" {
			what, _, _ := strings.Cut(e.Message, ", but none was provided") // what follows is for programs
			e.Message = what + " (" + address + ")"
			e.Hint = `give one with --token or in LM_API_TOKEN; on its machine, "lmcaddy token create" makes one`
		}
	}
	return e
}

// foreign is the message about an answer that isn't from the API, but from another server, or from a proxy before it.
func foreign(address string, status int, body []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "")), " ")
	if strings.HasPrefix(text, "Client sent an HTTP request to an HTTPS server") {
		return fmt.Sprintf("the server at %s speaks TLS: begin its address with https://", address)
	}
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "…"
	}
	if text == "" || strings.HasPrefix(text, "<") { // a page for browsers
		text = fmt.Sprintf("%s (%d)", http.StatusText(status), status)
	}
	return fmt.Sprintf("what answers at %s isn't lmcaddy, or is a proxy that doesn't reach it: it says %q", address, text)
}
