// Package outbound makes requests to other servers. It uses https, or http to this machine, follows only redirects that are as
// safe, and cancels requests to servers that stall.
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
	// Failed connections time out soon, so that they can be retried.
	connectTimeout = 15 * time.Second
	idleTimeout    = 60 * time.Second
	// idlePerHost is enough to reuse the connections of a file's parallel ranges.
	idlePerHost  = 16
	maxRedirects = 10
	// readBuffer is the read-ahead of a connection. Bodies are read in larger blocks, which bypass it.
	readBuffer = 64 << 10
)

// InsecureError says that a URL, or a redirect to it, doesn't use https.
type InsecureError struct {
	URL  string // without its password
	From string // the URL that redirected; empty if none did
}

func (e *InsecureError) Error() string {
	if e.From != "" {
		return fmt.Sprintf("%s redirects to %s, which is refused: only https is followed, or http on this machine", e.From, e.URL)
	}
	return fmt.Sprintf("%s is refused: only https is used, or http on this machine", e.URL)
}

// Check rejects a URL that uses neither https nor http to this machine, or that contains a password. The error is an
// [*InsecureError] if the scheme is wrong.
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

// IsLoopback reports whether a host is this machine, judging by the name alone.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// SameOrigin reports whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Hostname() == b.Hostname() && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" || u.Scheme != "https" {
		return p
	}
	return "443"
}

// NewTransport returns a transport for downloads. It uses HTTP/1.1, because with HTTP/2 the parallel ranges of a file would share
// a connection. It doesn't request compression, because ranges are counted in stored bytes.
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

// UserAgent is the User-Agent of all requests.
const UserAgent = "lmcaddy"

// CheckRedirect is for an [http.Client]. Requests that began with https stay with https, and those that began with http to this
// machine stay on this machine.
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

// ErrStalled is the cause of a context that a [Watchdog] has canceled.
var ErrStalled = errors.New("no more bytes arrived")

// Watchdog cancels a context if nothing happens for a while.
type Watchdog struct {
	after  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// WithWatchdog derives a context that is canceled with [ErrStalled] if [Watchdog.Alive] isn't called for the given duration. The
// caller must call Stop in the end.
func WithWatchdog(ctx context.Context, after time.Duration) (context.Context, *Watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Watchdog{after: after, cancel: cancel}
	w.timer = time.AfterFunc(after, func() { cancel(fmt.Errorf("%w for %v", ErrStalled, after)) })
	return ctx, w
}

// Alive restarts the timer.
func (w *Watchdog) Alive() { w.timer.Reset(w.after) }

// Stop stops the timer and cancels the context.
func (w *Watchdog) Stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// Sleep waits for a duration, or until the context ends. The error is the context's cause.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
