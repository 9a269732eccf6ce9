// Package client is a client of a running lmcaddy, over the socket in its home folder, or over HTTP with a token. The commands use it.
//
// All errors can be shown to users as they are: a [*DownError] if the server can't be reached, an [*Error] if it refuses a request.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// connectWithin bounds the time to connect. Responses have no timeout, since a model may take minutes to load.
const connectWithin = 15 * time.Second

// maxAnswer bounds a response that isn't a stream, in bytes. A list of ten thousand models takes megabytes.
const maxAnswer = 256 << 20

// Client is a client of one server. Its methods may be called from any goroutine.
type Client struct {
	base   string // without a trailing slash
	token  string
	socket string // empty for TCP
	http   *http.Client

	silence time.Duration // [silence], except in tests
}

// OnSocket returns a client of the server with a Unix socket.
func OnSocket(path string) *Client {
	return &Client{base: "http://localhost", socket: path, silence: silence, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: connectWithin}).DialContext(ctx, "unix", path)
		},
	}}}
}

// OnHost returns a client of the server at a URL, or at a host and port. The token may be empty.
func OnHost(host, token string) (*Client, error) {
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%s is not the address of a server: give one such as http://192.168.1.7:1234", host)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // uses the proxies in the environment
	transport.DialContext = (&net.Dialer{Timeout: connectWithin}).DialContext
	base := strings.TrimRight(u.String(), "/")
	return &Client{base: base, token: token, silence: silence, http: &http.Client{Transport: transport}}, nil
}

// Address returns the server's address, for messages.
func (c *Client) Address() string {
	if c.socket != "" {
		return c.socket
	}
	return c.base
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// silence bounds the time of a request that the server answers by itself. One that hangs accepts connections, too.
const silence = time.Minute

// Get requests a path, and decodes the response into a value, which may be nil. The error is a [*SilentError] if the server doesn't answer.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.GetWithin(ctx, c.silence, path, into)
}

// GetWithin is like Get for a question that takes no longer than that.
func (c *Client) GetWithin(ctx context.Context, longest time.Duration, path string, into any) error {
	bounded, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err := c.ask(bounded, http.MethodGet, path, nil, into)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return &SilentError{c.Address(), longest}
	}
	return err
}

func get[T any](ctx context.Context, c *Client, path string) (answer T, err error) {
	err = c.Get(ctx, path, &answer)
	return answer, err
}

// send sends a value, which may be nil, to a path whose answer is a T.
func send[T any](ctx context.Context, c *Client, method, path string, body any) (answer T, err error) {
	err = c.ask(ctx, method, path, body, &answer)
	return answer, err
}

// ask sends a value as JSON, unless it is nil, and decodes the response as Get does.
func (c *Client) ask(ctx context.Context, method, path string, body, into any) error {
	resp, err := c.request(ctx, method, path, "", body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decode(resp, c.Address(), into)
}

// decode reads a response that isn't a stream.
func decode(resp *http.Response, address string, into any) error {
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("the answer of the server at %s was cut off: %w", address, err)
	}
	if len(answer) > maxAnswer {
		return fmt.Errorf("the answer of the server at %s is larger than the %d MB that a command reads", address, maxAnswer>>20)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the server at %s doesn't answer like an lmcaddy server: %w", address, err)
	}
	return nil
}

// request returns a response with a success status. The caller must close its body. The media type that it accepts may be empty.
func (c *Client) request(ctx context.Context, method, path, accept string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(req, err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp, c.Address(), c.token != "")
}

// explain describes why a request got no response.
func (c *Client) explain(req *http.Request, err error) error {
	var failed *net.OpError
	var untrusted *tls.CertificateVerificationError
	var wrapped *url.Error
	switch {
	case errors.As(err, &failed) && (failed.Op == "dial" || failed.Op == "proxyconnect"):
		down := &DownError{Address: c.Address(), Reason: failed}
		if transport, ok := c.http.Transport.(*http.Transport); ok && transport.Proxy != nil {
			if proxy, err := transport.Proxy(req); err == nil && proxy != nil {
				down.Proxy = proxy.Host
			}
		}
		return down
	case errors.As(err, &untrusted):
		return fmt.Errorf("the certificate of %s isn't trusted here: %w. If you trust that server, save its root certificate "+
			"(%[1]s/api/v1/root.crt), and set SSL_CERT_FILE to that file", c.base, untrusted.Err)
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("the server at %s doesn't speak TLS: begin its address with http://", c.Address())
	case errors.As(err, &wrapped):
		err = wrapped.Err // the URL follows
	}
	return fmt.Errorf("asking the server at %s: %w", c.Address(), err)
}

const tokens = "/api/v1/tokens" //nolint:gosec // not a credential

// TokenEdit describes a new token, or a change of one. Nil fields stay unchanged.
type TokenEdit struct {
	Name    *string        `json:"name,omitempty"`
	Scopes  *[]string      `json:"scopes,omitempty"`
	Models  *[]string      `json:"models,omitempty"`
	Expires **time.Time    `json:"expires_at,omitempty"` // pointer to nil: never
	Limits  map[string]int `json:"limits,omitempty"`     // by the JSON names of [resource.TokenLimits]; 0: no limit
}

// Tokens returns the tokens, oldest first.
func (c *Client) Tokens(ctx context.Context) ([]resource.Token, error) {
	var list struct {
		Tokens []resource.Token `json:"tokens"`
	}
	err := c.Get(ctx, tokens, &list)
	return list.Tokens, err
}

// CreateToken creates a token.
func (c *Client) CreateToken(ctx context.Context, e TokenEdit) (resource.Token, error) {
	return send[resource.Token](ctx, c, http.MethodPost, tokens, e)
}

// EditToken changes a token.
func (c *Client) EditToken(ctx context.Context, id string, e TokenEdit) (resource.Token, error) {
	return send[resource.Token](ctx, c, http.MethodPatch, tokens+"/"+url.PathEscape(id), e)
}

// RevokeToken revokes a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.ask(ctx, http.MethodDelete, tokens+"/"+url.PathEscape(id), nil, nil)
}
