package process

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/http1"
)

// dialTimeout bounds how long connecting to an engine may take. All engines are on this machine.
const dialTimeout = 5 * time.Second

// errEnded says that a port no longer belongs to the engine, since its process has exited.
var errEnded = errors.New("the engine has ended")

const engineHost = "127.0.0.1"

const (
	// idleTimeout is how long a connection to an engine is kept without a request. llama-server closes idle connections after 5 s. Closing
	// them first avoids failed requests.
	idleTimeout = 4 * time.Second
	// maxHead bounds the header of an engine's answer, in bytes.
	maxHead = 1 << 20
)

// client sends requests to an engine.
type client struct {
	transport http1.Transport // for this process alone: an engine is slow to exit while a connection is open
	launched  atomic.Pointer[Launched]
}

// Launched returns what is known of the running process; nil: it isn't launched yet.
func (c *client) Launched() *Launched { return c.launched.Load() }

// dial connects to the engine. Once the engine has exited, another program may listen on its port, so a connection to a port is
// used only if the process is alive before and after connecting.
func (c *client) dial(ctx context.Context) (net.Conn, error) {
	l := c.launched.Load()
	if l == nil {
		return nil, errors.New("the engine isn't launched yet")
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	if l.socket != "" {
		return dialer.DialContext(ctx, "unix", l.socket)
	}
	if child.HasEnded(l.process) {
		return nil, errEnded
	}
	conn, err := dialer.DialContext(ctx, "tcp", l.Address)
	if err != nil {
		return nil, err
	}
	if child.HasEnded(l.process) {
		_ = conn.Close()
		return nil, errEnded
	}
	return conn, nil
}

func (c *client) do(ctx context.Context, path string, body http1.Body) (*http.Response, error) {
	return c.transport.Do(ctx, &http1.Request{
		Method: http.MethodPost, Target: path, Host: engineHost, Header: c.launched.Load().header, Body: body,
	})
}

// askOnce is an [Ask] of the engine.
func (c *client) askOnce(ctx context.Context, path string, body [][]byte) (status int, answer []byte, _ error) {
	resp, err := c.do(ctx, path, http1.Body{Pieces: body})
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	return readAnswer(resp, maxTrial)
}

// readAnswer reads an answer of at most this many bytes.
func readAnswer(resp *http.Response, most int64) (status int, answer []byte, _ error) {
	answer, err := io.ReadAll(io.LimitReader(resp.Body, most))
	return resp.StatusCode, answer, err
}

// ask sends a GET request to the engine.
func (c *client) ask(ctx context.Context, path string) (*http.Response, error) {
	return c.transport.Do(ctx, &http1.Request{Method: http.MethodGet, Target: path, Host: engineHost, Header: c.launched.Load().header[:1]})
}

// loadClient is for requests to an engine that is loading. It keeps no connections: an idle one would delay the engine's exit.
func (c *client) loadClient() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) }
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}
