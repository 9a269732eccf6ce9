package runtimes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	getter "github.com/hashicorp/go-getter/v2"

	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

const (
	// answerTimeout is short, so that another source can be tried soon.
	answerTimeout = 30 * time.Second
	// stallTimeout bounds the time without a byte. A download may take as long as bytes keep coming.
	stallTimeout = 60 * time.Second
)

// sourceError says that a source can't be reached, breaks off, or has nothing for this machine. Another source may do better.
type sourceError struct{ cause error }

func (e *sourceError) Error() string { return e.cause.Error() }
func (e *sourceError) Unwrap() error { return e.cause }

// statusError is an HTTP response other than a success.
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

// remote is a server that publishes releases.
type remote struct {
	base   string
	client *http.Client
}

func newRemote(base string, stall time.Duration) *remote {
	if base == "" {
		base = releasesURL
	}
	transport := outbound.NewTransport()
	transport.ResponseHeaderTimeout = answerTimeout
	return &remote{
		base:   strings.TrimRight(base, "/"),
		client: &http.Client{Transport: &sorter{transport, stall}, CheckRedirect: outbound.CheckRedirect},
	}
}

func (c *remote) close() { c.client.CloseIdleConnections() }

// sorter is a RoundTripper that cancels requests to servers that stall. It distinguishes servers that can't be reached from
// those that refuse a request, with errors that go-getter passes on.
type sorter struct {
	next  *http.Transport
	stall time.Duration
}

func (s *sorter) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, dog := outbound.WithWatchdog(request.Context(), s.stall)
	response, err := s.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		err = reachability(ctx, err)
		dog.Stop()
		return nil, err
	}
	if response.StatusCode < 400 {
		response.Body = &sortedBody{response.Body, ctx, dog}
		return response, nil
	}
	response.Body.Close()
	dog.Stop()
	status := &statusError{response.StatusCode, request.URL.Host}
	switch code := response.StatusCode; {
	case code >= 500, code == http.StatusForbidden, code == http.StatusProxyAuthRequired, code == http.StatusTooManyRequests:
		return nil, &sourceError{status}
	default:
		return nil, status
	}
}

// CloseIdleConnections makes the method of http.Client work.
func (s *sorter) CloseIdleConnections() { s.next.CloseIdleConnections() }

type sortedBody struct {
	io.ReadCloser
	ctx context.Context //nolint:containedctx // of the request; it ends with Close
	dog *outbound.Watchdog
}

func (b *sortedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.dog.Alive()
	}
	if err != nil && err != io.EOF { //nolint:errorlint // a Reader must return a bare io.EOF
		err = reachability(b.ctx, err)
	}
	return n, err
}

func (b *sortedBody) Close() error {
	b.dog.Stop()
	return b.ReadCloser.Close()
}

// reachability converts an error, unless the context was canceled on purpose.
func reachability(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, outbound.ErrStalled):
		return &sourceError{cause}
	case cause != nil:
		return cause
	default:
		return &sourceError{err}
	}
}

// download downloads a release's file and verifies its checksum. On error, the content of path is undefined.
func (c *remote) download(ctx context.Context, a asset, path string, report func(done, total int64)) error {
	if err := c.check(a); err != nil {
		return err
	}
	client := &getter.Client{
		Getters: []getter.Getter{&getter.HttpGetter{
			Client:                c.client,
			Header:                http.Header{"User-Agent": {outbound.UserAgent}},
			XTerraformGetDisabled: true,
			DoNotCheckHeadFirst:   true, // the staging folder is new, so there is nothing to resume
		}},
		Decompressors:   map[string]getter.Decompressor{}, // nil means all of them
		DisableSymlinks: true,
	}
	request := &getter.Request{
		Src:              a.url + "?checksum=" + url.QueryEscape("sha256:"+a.sha256),
		Dst:              path,
		GetMode:          getter.ModeFile,
		Umask:            0o022,
		ProgressListener: &meter{size: a.size, report: report},
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

// meter reports the progress of a download.
type meter struct {
	size   int64
	report func(done, total int64)
}

// TrackProgress implements getter.ProgressTracker.
func (m *meter) TrackProgress(_ string, done, total int64, stream io.ReadCloser) io.ReadCloser {
	if total <= 0 {
		total = m.size
	}
	return &meteredBody{ReadCloser: stream, report: m.report, done: done, total: total}
}

type meteredBody struct {
	io.ReadCloser
	report      func(done, total int64)
	done, total int64
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.done += int64(n)
		b.report(b.done, b.total)
	}
	return n, err
}
