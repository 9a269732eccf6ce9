package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// DownError says that no server accepts connections at an address.
type DownError struct {
	Address string
	Reason  error
}

func (e *DownError) Error() string {
	return fmt.Sprintf("no server answers at %s: %v", e.Address, e.Reason)
}

// Unwrap returns the reason.
func (e *DownError) Unwrap() error { return e.Reason }

// Error is an error response of the server.
type Error struct {
	Status        int
	Type, Code    string // for programs; may be empty
	Message, Hint string // for people; the client adds the hint, which may be empty
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return strings.TrimRight(e.Message, ". ") + ": " + e.Hint
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

// isOfTool reports whether a server of tools failed, which a chat may survive.
func (f Fault) isOfTool() bool {
	return f.Type == "mcp_connection_error" || f.Type == "plugin_connection_error"
}

// Err returns the fault as an error.
func (f Fault) Err() error { return &Error{Type: f.Type, Code: f.Code, Message: f.Message} }

// refusal converts an error response.
func (c *Client) refusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // a part of the body will do
	var told struct {
		Error Fault `json:"error"`
	}
	e := &Error{Status: resp.StatusCode}
	if json.Unmarshal(body, &told) == nil && told.Error.Message != "" {
		e.Type, e.Code, e.Message = told.Error.Type, told.Error.Code, told.Error.Message
	} else {
		text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "")), " ")
		if len(text) > maxQuoted {
			text = strings.ToValidUTF8(text[:maxQuoted], "") + "…"
		}
		e.Message = fmt.Sprintf("the server at %s answers with status %d (%s), unlike an lmcaddy server: %s",
			c.Address(), resp.StatusCode, http.StatusText(resp.StatusCode), text)
		e.Message = strings.TrimRight(e.Message, ": ")
	}
	if resp.StatusCode == http.StatusUnauthorized {
		e.Hint = "give a token of that server with --token or in LM_API_TOKEN"
		if c.token != "" {
			e.Hint = "the token that was given, by --token or LM_API_TOKEN, isn't one of that server's"
		}
	}
	return e
}
