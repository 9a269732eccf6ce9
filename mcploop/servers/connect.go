package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

const (
	handshakeTimeout = 20 * time.Second
	startTimeout     = 30 * time.Second
	fetchTimeout     = 4                // how many times as long a program may take that may download the server first
	pingTimeout      = 10 * time.Second // generous: a program that is told that a call was canceled may take some time to stop it
	forever          = 24 * time.Hour   // longer than any call: calls have time limits of their own
)

type target struct {
	Config
	owner    string // who named the server by URL; empty for the servers of mcp.json. isRemote tells them apart.
	isRemote bool
}

type connector struct {
	log      *slog.Logger
	journal  string
	timeout  func() time.Duration // of a call
	private  func() hosts
	resolver *net.Resolver // nil: the default

	handshake time.Duration
	startup   time.Duration
	patience  time.Duration
}

// connect connects to a server. The connection lives as long as ctx.
func (c *connector) connect(ctx context.Context, t target) (conn, error) {
	var l *link
	var err error
	if t.Command != "" {
		l, err = c.overStdio(ctx, t)
	} else {
		l, err = c.overHTTP(ctx, t)
	}
	if err != nil {
		return nil, err // not a nil link in an interface
	}
	return l, nil
}

// overHTTP tries streamable HTTP, which nearly all servers know, then the older transport and the newest protocol, without a handshake.
func (c *connector) overHTTP(ctx context.Context, t target) (*link, error) {
	limit, cancel := context.WithTimeoutCause(ctx, c.handshake, &timeoutError{c.handshake})
	defer cancel()
	if t.Type == typeSSE {
		return c.sse(ctx, limit, t)
	}
	l, err := c.streamable(ctx, limit, t, true)
	if err == nil || !speaksOtherwise(err) {
		return l, err
	}
	if _, ok := errors.AsType[*statusError](err); ok && t.Type == "" {
		// A server of the newest protocol may hold this request open and say nothing.
		short, cancel := context.WithTimeoutCause(limit, c.handshake/4, &timeoutError{c.handshake / 4})
		l, old := c.sse(ctx, short, t)
		cancel()
		if old == nil {
			return l, nil
		}
		if is[*originError](old) {
			return nil, old
		}
	}
	l, newest := c.streamable(ctx, limit, t, false)
	if newest != nil {
		return nil, err
	}
	return l, nil
}

// speaksOtherwise reports whether a server refused the handshake in a way that leaves hope for another protocol.
func speaksOtherwise(err error) bool {
	if is[*refusedError](err) {
		return true
	}
	status, ok := errors.AsType[*statusError](err)
	if !ok || status.status < 400 || status.status >= 500 {
		return false
	}
	switch status.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return true
}

// withHandshake keeps the library from trying the newest protocol first: some servers crash on anything before the handshake.
var withHandshake = client.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION)

// open connects to a server over HTTP with a client that a function makes.
func (c *connector) open(ctx, limit context.Context, t target, newClient func(*http.Client, *link) (*client.Client, error)) (*link, error) {
	u, err := parseURL(t.URL)
	if err != nil {
		return nil, err
	}
	l := newLink(ctx, c.log.With("server", t.Label), c.timeout)
	var judge func(netip.Addr) error
	if t.isRemote {
		judge = func(addr netip.Addr) error {
			if isPublic(addr) || c.private().allow(u) {
				return nil
			}
			return &notPublicError{addr}
		}
	}
	httpClient := newHTTPClient(u, t.Headers, l, c.resolver, judge)
	l.shut = httpClient.CloseIdleConnections
	made, err := newClient(httpClient, l)
	if err != nil {
		l.close()
		return nil, &protocolError{"its URL can't be used"}
	}
	l.use(made)
	if err := c.begin(limit, l); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (c *connector) streamable(ctx, limit context.Context, t target, handshake bool) (*link, error) {
	return c.open(ctx, limit, t, func(httpClient *http.Client, _ *link) (*client.Client, error) {
		options := []transport.StreamableHTTPCOption{transport.WithHTTPBasicClient(httpClient), transport.WithHTTPLogger(quiet)}
		var only []client.ClientOption
		if handshake {
			// Servers that want the handshake send notifications this way only.
			options = append(options, transport.WithContinuousListening()) //nolint:staticcheck // deprecated with the handshake
			only = append(only, withHandshake)
		}
		streamable, err := transport.NewStreamableHTTP(t.URL, options...)
		return client.NewClient(streamableTap{streamable}, only...), err
	})
}

// sse connects over the transport that was before streamable HTTP.
func (c *connector) sse(ctx, limit context.Context, t target) (*link, error) {
	return c.open(ctx, limit, t, func(httpClient *http.Client, l *link) (*client.Client, error) {
		sse, err := transport.NewSSE(t.URL, transport.WithHTTPClient(httpClient), transport.WithSSELogger(quiet),
			transport.WithEndpointTimeout(forever), transport.WithResponseTimeout(forever))
		if err != nil {
			return nil, err
		}
		sse.SetConnectionLostHandler(func(err error) {
			l.log.Debug("an MCP server's stream ended", "error", clean(err))
			l.lose(errLost)
		})
		return client.NewClient(sseTap{sse}, withHandshake), nil
	})
}

// quiet is the library's logger: what it logs is about details, and may have contents and URLs among its attributes.
var quiet = slog.New(slog.DiscardHandler)

func (c *connector) begin(limit context.Context, l *link) error {
	_, isStreamable := l.client.GetTransport().(streamableTap)
	n := &note{beside: isStreamable}
	// What starts now lives as long as the link, so only the time until then is limited here.
	stop := context.AfterFunc(limit, func() { l.lose(context.Cause(limit)) })
	err := l.client.Start(withNote(l.life, n))
	if err == nil {
		err = c.initialize(l, n)
	}
	if !stop() && err == nil {
		err = context.Cause(limit)
	}
	switch {
	case err == nil:
		l.ready = true
		return nil
	case n.failed() != nil:
		return n.failed()
	case l.life.Err() != nil && !errors.Is(context.Cause(l.life), errLost):
		return context.Cause(l.life)
	default:
		return n.why(err)
	}
}

func (c *connector) initialize(l *link, n *note) error {
	defer l.budget.begin()()
	request := mcp.InitializeRequest{}
	request.Params.ClientInfo = mcp.Implementation{Name: "lmcaddy", Version: "1"}
	_, err := l.client.Initialize(withNote(l.life, n), request)
	return err
}

// describe says why a server can't be connected to, or why it failed when it was.
func (t target) describe(err error, connected bool) *ConnectionError {
	who := fmt.Sprintf("MCP server '%s'", clip(t.Label))
	if t.isRemote {
		who = fmt.Sprintf("remote MCP server '%s' at url '%s'", clip(t.Label), shown(t.URL))
	}
	message := fmt.Sprintf("Unable to connect to %s. %s", who, reason(err))
	if connected {
		message = fmt.Sprintf("The call failed at %s. %s", who, reason(err))
	}
	switch {
	case is[*notPublicError](err):
		message = fmt.Sprintf("Unable to connect to %s. URL resolves to a non-public address. We only allow public addresses for dynamic "+
			"remote MCP connections. The operator of this server can allow the host with mcp_private_hosts.", who)
	case t.Command != "" && is[*startError](err):
		message = fmt.Sprintf("The MCP server '%s' could not be started; the server's log says why.", clip(t.Label))
	case t.Command != "" && is[*endedError](err):
		message = fmt.Sprintf("The MCP server '%s' ended; the server's log says why. It is started again when it is next used.",
			clip(t.Label))
	}
	return &ConnectionError{Message: message, Cause: clean(err)}
}

// shown returns a URL without its user and its query, either of which may be a secret.
func shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "?"
	}
	return clip((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
}
