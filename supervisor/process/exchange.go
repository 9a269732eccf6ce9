package process

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/http1"
)

// Post sends a JSON body to the engine as a part of a lease, and returns the answer when its header has come.
func (p *Process) Post(ctx context.Context, lease uint64, path string, body http1.Body) (*http.Response, error) {
	sent := p.pulse.begin(ctx, lease, body.Size())
	resp, err := p.do(ctx, path, body)
	if err != nil {
		sent.failed()
		sent.end()
		return nil, err
	}
	sent.answered(resp)
	resp.Body = sent
	return resp, nil
}

// Forget says that nothing more is sent on a lease. Since the process is alive, none of its exchanges made it exit.
func (p *Process) Forget(lease uint64) {
	u := p.pulse
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ctx.Err() == nil {
		maps.DeleteFunc(u.exchanges, func(x *exchange, _ struct{}) bool { return x.lease == lease })
	}
}

// exchange is one request to an engine and its answer, of which it is the body.
type exchange struct {
	body   io.ReadCloser // of the connection
	pulse  *pulse
	lease  uint64
	ctx    context.Context // of the request
	tokens int             // upper bound of its prompt

	// These are guarded by the pulse's lock.
	waits  bool
	since  time.Time // when its last byte arrived
	paced  bool      // its answer no longer reports prompt progress
	pace   Pace      // as last reported
	ended  bool      // the answer is complete
	broken bool      // the answer broke off, and not by the client
	untold bool      // the answer ends when the connection does, so that an end may be a breaking off
}

// wait records that the exchange waits for bytes. It doesn't while its client is slow.
func (x *exchange) wait() {
	u := x.pulse
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waitsFor(x, time.Now())
}

// got records the end of a wait.
func (x *exchange) got(piece []byte, err error) {
	u := x.pulse
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	u.waitsNoMore(x, now)
	if len(piece) > 0 && u.moves(x, piece) {
		u.progress(now)
	}
	if errors.Is(err, io.EOF) {
		x.ended = !x.untold
	} else if err != nil {
		x.breaks()
	}
}

// failed records that there was no answer. The transport's error may be io.EOF, if the engine closed the connection.
func (x *exchange) failed() {
	u := x.pulse
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waitsNoMore(x, time.Now())
	x.breaks()
}

// breaks must be called with the lock held. An exchange that its client has cancelled isn't broken.
func (x *exchange) breaks() { x.broken = x.ctx.Err() == nil }

// nothing stands for a piece of an answer that tells nothing but that something has come.
var nothing = []byte{0}

func (x *exchange) answered(header *http.Response) {
	x.body = header.Body
	x.untold = header.ContentLength < 0 && len(header.TransferEncoding) == 0
	x.got(nothing, nil)
}

// Read reads the answer.
func (x *exchange) Read(p []byte) (int, error) {
	x.wait()
	n, err := x.body.Read(p)
	x.got(p[:n], err)
	return n, err
}

// Close ends the exchange.
func (x *exchange) Close() error {
	err := x.body.Close()
	x.end()
	return err
}

// end records that nothing more is read. An exchange that broke off, or may have done so, stays registered, since it may have made the
// engine exit.
func (x *exchange) end() {
	u := x.pulse
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waitsNoMore(x, time.Now())
	if x.broken || x.untold || (!x.ended && u.hasBroken(x.lease)) {
		return
	}
	delete(u.exchanges, x)
	if !x.ended && u.ctx.Err() == nil {
		if !u.left {
			u.leftTokens = 0
		}
		u.leftTokens += x.tokens
		u.left, u.leftAt = true, time.Now()
		u.arm(probeAfter)
	}
}

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

func (c *client) askOnce(ctx context.Context, path string, body [][]byte) (status int, answer []byte, _ error) {
	resp, err := c.do(ctx, path, http1.Body{Pieces: body})
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	return readAnswer(resp, maxTrial)
}

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
