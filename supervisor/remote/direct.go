package remote

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/http1"
)

// direct sends requests without TLS, for which HTTP/1.1 is all that there is.
type direct struct {
	http1.Transport

	host string // of the header
	path string // before that of a request
}

var errClosed = errors.New("the connection is closed")

// newDirect returns nil if the address, a URL, needs more than a direct connection.
func newDirect(base string, dialer *net.Dialer) *direct {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" || strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' || r == '%' }) {
		return nil
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	address := net.JoinHostPort(u.Hostname(), port)
	d := &direct{host: u.Host, path: u.EscapedPath()}
	d.Dial = func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", address) }
	d.Idle, d.MaxHead, d.Closed = idleTimeout, maxHeader, errClosed
	return d
}

func (d *direct) post(ctx context.Context, path string, fields []http1.Field, body http1.Body) (*http.Response, error) {
	return d.Do(ctx, &http1.Request{Method: http.MethodPost, Target: d.path + path, Host: d.host, Header: fields, Body: body})
}
