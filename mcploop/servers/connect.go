package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
	"github.com/lmcaddy/lmcaddy/internal/secret"
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

const (
	dialTimeout  = 10 * time.Second
	idleTimeout  = 90 * time.Second
	maxRedirects = 5
	maxHeader    = 64 << 10
	maxConns     = 256 // bounds the connections to one server, whose own requests take one each to be answered
)

// road is the way to one server. It lets no request leave the server's origin, adds the server's headers, and bounds what comes back.
type road struct {
	base    *http.Transport
	origin  string
	headers map[string]string
	link    *link
}

// newHTTPClient returns a client for the server at u. judge, if there is one, is asked about each address before it is dialled.
func newHTTPClient(u *url.URL, headers map[string]string, l *link, resolver *net.Resolver, judge func(netip.Addr) error) *http.Client {
	dial := &net.Dialer{Timeout: dialTimeout, Resolver: resolver}
	base := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dial.DialContext, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true,
		IdleConnTimeout: idleTimeout, MaxConnsPerHost: maxConns, MaxResponseHeaderBytes: maxHeader,
	}
	if judge != nil {
		// A proxy would resolve the name by itself.
		base.Proxy = nil
		dial.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			addr, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return judge(addr.Addr())
		}
	}
	return &http.Client{
		Transport: &road{base: base, origin: originOf(u), headers: headers, link: l},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errRedirects
			}
			return nil // road refuses other origins
		},
	}
}

func (r *road) RoundTrip(request *http.Request) (*http.Response, error) {
	n := noteOf(request.Context())
	if origin := originOf(request.URL); origin != r.origin {
		err := &originError{origin}
		n.fail(err)
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", outbound.UserAgent)
	for name, value := range r.headers {
		request.Header.Set(name, value)
	}
	response, err := r.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = secret.Mask(response.Body, secretsIn(r.headers)...)
	r.look(response, n)
	return response, nil
}

// secretsIn returns the values of headers that are secrets: those without the scheme before them.
func secretsIn(headers map[string]string) (secrets []string) {
	for name, value := range headers {
		if name = strings.ToLower(name); name == "cookie" || logs.IsSecretName(name) {
			secrets = append(secrets, value[strings.LastIndexByte(value, ' ')+1:])
		}
	}
	return secrets
}

// look notes what is wrong with a response, and bounds its body.
func (r *road) look(response *http.Response, n *note) {
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	isGet := response.Request.Method == http.MethodGet
	isStream := mediaType == "text/event-stream"
	isRedirect := response.StatusCode >= 300 && response.StatusCode < 400 && response.Header.Get("Location") != ""
	switch {
	case isRedirect, isGet && (n == nil || n.beside):
	case response.StatusCode >= 300:
		n.saw(response.StatusCode, "")
	case response.StatusCode == http.StatusOK && !isStream && (isGet || mediaType != "application/json"):
		n.saw(0, mediaType)
	}
	// A GET is for a stream. Where there is none, a status says so that keeps the library from asking every second.
	refuses := response.StatusCode >= 400 && response.StatusCode < 500 && response.StatusCode != http.StatusNotFound
	if isGet && (refuses || response.StatusCode == http.StatusOK && !isStream) {
		response.StatusCode = http.StatusMethodNotAllowed
	}
	if isStream && isGet {
		r.link.forget() // what has changed before notifications are read isn't told
	}
	if isStream {
		body := newEventBody(response.Body, r.link.budget, n, isGet)
		body.endpoint = func(data string) error {
			// The library ignores an endpoint elsewhere, and waits for another.
			u, err := response.Request.URL.Parse(data)
			if err == nil && originOf(u) != r.origin {
				return &originError{originOf(u)}
			}
			return nil
		}
		response.Body = body
		return
	}
	response.Body = &wholeBody{ReadCloser: response.Body, budget: r.link.budget, note: n}
}

func (r *road) CloseIdleConnections() { r.base.CloseIdleConnections() }
