package servers

import (
	"context"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
	"github.com/lmcaddy/lmcaddy/internal/secret"
)

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
