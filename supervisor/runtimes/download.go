package runtimes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	getter "github.com/hashicorp/go-getter/v2"
)

const (
	userAgent = "lmcaddy"
	// Connections that were refused or go unanswered are given up soon, so that another way can be tried.
	connectTimeout = 15 * time.Second
	answerTimeout  = 30 * time.Second
	// A download may take as long as it needs while bytes still come.
	stallTimeout = 60 * time.Second
	maxRedirects = 10
)

var errStalled = errors.New("no more bytes came")

// unreachableError says that a server couldn't be reached, or broke off: another source may still work.
type unreachableError struct{ cause error }

func (e *unreachableError) Error() string { return e.cause.Error() }
func (e *unreachableError) Unwrap() error { return e.cause }

// statusError is an HTTP answer that isn't a success.
type statusError struct {
	code int
	host string
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%s answered %d %s", e.host, e.code, http.StatusText(e.code))
	if e.code == http.StatusForbidden || e.code == http.StatusTooManyRequests {
		text += " (too many requests from this address, or a proxy's refusal)"
	}
	return text
}

// noChecksumError refuses a file that couldn't be checked.
type noChecksumError struct{ name string }

func (e *noChecksumError) Error() string {
	return fmt.Sprintf("the release states no SHA-256 checksum for %s, so it is not fetched", e.name)
}

// remote is where releases are published.
type remote struct {
	base   string
	client *http.Client
	stall  time.Duration
}

func newRemote(base string, stall time.Duration) *remote {
	if base == "" {
		base = releasesURL
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: answerTimeout,
		ForceAttemptHTTP2:     true,
	}
	return &remote{
		base:  strings.TrimRight(base, "/"),
		stall: stall,
		client: &http.Client{
			Transport: &sorter{transport},
			CheckRedirect: func(request *http.Request, via []*http.Request) error {
				if len(via) >= maxRedirects {
					return errors.New("too many redirects")
				}
				if via[0].URL.Scheme == "https" && request.URL.Scheme != "https" {
					return fmt.Errorf("redirected from https to %s", request.URL.Redacted())
				}
				return nil
			},
		},
	}
}

func (c *remote) close() { c.client.CloseIdleConnections() }

// sorter is a RoundTripper that tells a server out of reach from one that refuses, in errors that survive go-getter.
type sorter struct{ next *http.Transport }

func (s *sorter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	if err != nil {
		return nil, reachability(request.Context(), err)
	}
	if response.StatusCode < 400 {
		response.Body = &sortedBody{response.Body, request.Context()}
		return response, nil
	}
	response.Body.Close()
	status := &statusError{response.StatusCode, request.URL.Host}
	switch code := response.StatusCode; {
	case code >= 500, code == http.StatusForbidden, code == http.StatusProxyAuthRequired, code == http.StatusTooManyRequests:
		return nil, &unreachableError{status}
	default:
		return nil, status
	}
}

// CloseIdleConnections lets http.Client's method of the same name reach the transport.
func (s *sorter) CloseIdleConnections() { s.next.CloseIdleConnections() }

type sortedBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b *sortedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // a Reader's end is the bare value
		err = reachability(b.ctx, err)
	}
	return n, err
}

// reachability tells a failure of the connection from an end that was wanted.
func reachability(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errStalled):
		return &unreachableError{cause}
	case cause != nil:
		return cause
	default:
		return &unreachableError{err}
	}
}

// download fetches a release's file and checks it against its checksum. At an error, path may hold anything.
func (c *remote) download(ctx context.Context, a asset, path string, report func(done, total int64)) error {
	if a.sha256 == "" {
		return &noChecksumError{a.name}
	}
	if err := c.checkURL(a.url); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := &getter.Client{
		Getters: []getter.Getter{&getter.HttpGetter{
			Client:                c.client,
			Header:                http.Header{"User-Agent": {userAgent}},
			XTerraformGetDisabled: true,
			DoNotCheckHeadFirst:   true, // a staging folder is new: there is nothing to resume
		}},
		Decompressors:   map[string]getter.Decompressor{}, // nil would mean all of them
		DisableSymlinks: true,
	}
	request := &getter.Request{
		Src:              a.url + "?checksum=" + url.QueryEscape("sha256:"+a.sha256),
		Dst:              path,
		GetMode:          getter.ModeFile,
		Umask:            0o022,
		ProgressListener: &meter{size: a.size, report: report, stall: c.stall, cancel: cancel},
	}
	_, err := client.Get(ctx, request)
	if mismatch, ok := errors.AsType[*getter.ChecksumError](err); ok {
		_ = os.Remove(path)
		return fmt.Errorf("%s has SHA-256 %x, but the release says %x: it is not used", a.name, mismatch.Actual, mismatch.Expected)
	}
	if err != nil {
		return fmt.Errorf("fetching %s: %w", a.name, err)
	}
	return nil
}

// meter reports how a download gets on, and gives it up when it doesn't.
type meter struct {
	size   int64
	report func(done, total int64)
	stall  time.Duration
	cancel context.CancelCauseFunc
}

// TrackProgress implements getter.ProgressTracker.
func (m *meter) TrackProgress(_ string, done, total int64, stream io.ReadCloser) io.ReadCloser {
	if total <= 0 {
		total = m.size
	}
	stalled := fmt.Errorf("%w for %v", errStalled, m.stall)
	timer := time.AfterFunc(m.stall, func() { m.cancel(stalled) })
	return &meteredBody{ReadCloser: stream, meter: m, done: done, total: total, timer: timer}
}

type meteredBody struct {
	io.ReadCloser
	meter       *meter
	done, total int64
	timer       *time.Timer
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.timer.Reset(b.meter.stall)
		b.done += int64(n)
		b.meter.report(b.done, b.total)
	}
	return n, err
}

func (b *meteredBody) Close() error {
	b.timer.Stop()
	return b.ReadCloser.Close()
}
