// Package outbound is how this server fetches things from elsewhere: over https, or plain http on this machine alone; by
// redirects that keep to that; and never waiting for a server that has gone silent.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

const (
	// Connections that were refused or go unanswered are given up soon, so that another try can begin.
	connectTimeout = 15 * time.Second
	idleTimeout    = 60 * time.Second
	// idlePerHost keeps the connections of a file's parallel parts for its next parts.
	idlePerHost  = 16
	maxRedirects = 10
	// readBuffer is what a connection reads ahead. Bodies are read past it, in larger blocks.
	readBuffer = 64 << 10
)

// InsecureError says that an address, or a redirect to it, would leave https.
type InsecureError struct {
	URL  string // without its password
	From string // the address that redirected; empty where nothing did
}

func (e *InsecureError) Error() string {
	if e.From != "" {
		return fmt.Sprintf("%s redirects to %s, which is refused: only https is followed, or http on this machine", e.From, e.URL)
	}
	return fmt.Sprintf("%s is refused: only https is used, or http on this machine", e.URL)
}

// Check refuses an address that is neither https nor http on this machine, or that holds a password. The error is an
// [*InsecureError] where the scheme is at fault.
func Check(u *url.URL) error {
	switch {
	case u.Host == "":
		return fmt.Errorf("%q names no host: an address looks like https://host/path", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("%s holds a user name or password, which would end up in logs: leave it out", u.Redacted())
	case u.Scheme == "https", u.Scheme == "http" && IsLoopback(u.Hostname()):
		return nil
	default:
		return &InsecureError{URL: u.Redacted()}
	}
}

// IsLoopback tells whether a host is this machine by its name alone; nothing is looked up.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// SameOrigin tells whether two addresses have the scheme, the host and the port in common.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Hostname() == b.Hostname() && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" || u.Scheme != "https" {
		return p
	}
	return "443"
}

// NewTransport makes connections for fetching files. It speaks HTTP/1.1, because parallel parts of a file over HTTP/2
// would share one connection and gain nothing, and asks for no compression, because parts are counted in bytes as stored.
func NewTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout: connectTimeout,
		Protocols:           protocols,
		DisableCompression:  true,
		MaxIdleConnsPerHost: idlePerHost,
		IdleConnTimeout:     idleTimeout,
		ReadBufferSize:      readBuffer,
	}
}

// UserAgent is the name that other servers know this one by.
const UserAgent = "lmcaddy"

// CheckRedirect is for an [http.Client]. A request that began with https stays with it, and one that began with http on this
// machine stays on this machine.
func CheckRedirect(request *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return errors.New("too many redirects")
	}
	last := via[len(via)-1].URL
	refused := &InsecureError{URL: request.URL.Redacted(), From: last.Redacted()}
	if Check(via[0].URL) == nil && Check(request.URL) != nil || via[0].URL.Scheme == "https" && request.URL.Scheme != "https" {
		return refused
	}
	return nil
}

// ErrStalled is why a context ends that a [Watchdog] has given up.
var ErrStalled = errors.New("no more bytes came")

// Watchdog ends a context when nothing has happened for a while.
type Watchdog struct {
	after  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// WithWatchdog derives a context that ends with [ErrStalled], unless [Watchdog.Alive] is called at least so often. Stop has to be
// called when the work is done.
func WithWatchdog(ctx context.Context, after time.Duration) (context.Context, *Watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Watchdog{after: after, cancel: cancel}
	w.timer = time.AfterFunc(after, func() { cancel(fmt.Errorf("%w for %v", ErrStalled, after)) })
	return ctx, w
}

// Alive says that something has happened.
func (w *Watchdog) Alive() { w.timer.Reset(w.after) }

// Stop ends the watch, and the context with it.
func (w *Watchdog) Stop() {
	w.timer.Stop()
	w.cancel(nil)
}
