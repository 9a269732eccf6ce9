// Package client talks to a running lmcaddy: over the socket in its home folder, or over HTTP with a token. It is what
// the commands are made of.
//
// Whatever goes wrong is an error that can be shown to people as it is: a [*DownError] when nobody answers, an [*Error] when
// the server refuses.
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
)

// connectWithin bounds how long a connection may take. Answers have no bound: a model may take minutes to load.
const connectWithin = 15 * time.Second

// maxAnswer bounds an answer in one piece, in bytes. A list of ten thousand models has some megabytes.
const maxAnswer = 256 << 20

// Client asks one server. It may be used by several goroutines.
type Client struct {
	base   string // without a slash at its end
	token  string
	socket string // empty: over TCP
	http   *http.Client
}

// OnSocket is a client of the server that has a Unix socket.
func OnSocket(path string) *Client {
	return &Client{base: "http://localhost", socket: path, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: connectWithin}).DialContext(ctx, "unix", path)
		},
	}}}
}

// OnHost is a client of the server at a URL, or at a host and port. The token may be empty.
func OnHost(host, token string) (*Client, error) {
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	u, err := url.Parse(host)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%s is not the address of a server: give one such as http://192.168.1.7:1234", host)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // with the proxies of the environment
	transport.DialContext = (&net.Dialer{Timeout: connectWithin}).DialContext
	return &Client{base: strings.TrimRight(u.String(), "/"), token: token, http: &http.Client{Transport: transport}}, nil
}

// Address is where the server is, for people.
func (c *Client) Address() string {
	if c.socket != "" {
		return c.socket
	}
	return c.base
}

// Close lets go of connections that aren't used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get asks for a path, and reads the answer into a value, unless that is nil.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.ask(ctx, http.MethodGet, path, nil, into)
}

// Post sends a value as JSON; nil sends nothing. The answer is read as by Get.
func (c *Client) Post(ctx context.Context, path string, body, into any) error {
	return c.ask(ctx, http.MethodPost, path, body, into)
}

// Patch is Post with another method.
func (c *Client) Patch(ctx context.Context, path string, body, into any) error {
	return c.ask(ctx, http.MethodPatch, path, body, into)
}

// Delete is Get with another method.
func (c *Client) Delete(ctx context.Context, path string, into any) error {
	return c.ask(ctx, http.MethodDelete, path, nil, into)
}

func (c *Client) ask(ctx context.Context, method, path string, body, into any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the answer of the server at %s broke off: %w", c.Address(), err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("the server at %s doesn't answer as an lmcaddy does: %w", c.Address(), err)
	}
	return nil
}

// send gives an answer whose status says that all is well. Its body is to be closed.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
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
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refusal(resp)
}

// explain says of a request that got no answer why that may be.
func (c *Client) explain(err error) error {
	var failed *net.OpError
	var untrusted *tls.CertificateVerificationError
	var wrapped *url.Error
	switch {
	case errors.As(err, &failed) && failed.Op == "dial":
		return &DownError{Address: c.Address(), Reason: failed}
	case errors.As(err, &untrusted):
		return fmt.Errorf("the certificate of %s isn't trusted here: %w. If it is of that server's own making, let SSL_CERT_FILE name a file with its root certificate", c.base, untrusted.Err)
	case errors.As(err, &wrapped):
		err = wrapped.Err // without the URL, which follows
	}
	return fmt.Errorf("asking the server at %s: %w", c.Address(), err)
}
