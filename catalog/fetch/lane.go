package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

// lane downloads the spans of a part one after the other, and retries while that may help.
type lane struct {
	*ranges
	address  string
	accepted func() // called when the server has answered a range request

	failures int   // in a row, since the file last grew
	best     int64 // the most bytes that the file had
}

// run returns when no span is left. The error is a *hub.Error, errNoRanges or the context's.
func (l *lane) run(ctx context.Context) error {
	for {
		s := l.part.take(l.most())
		if s.From == s.To {
			return nil
		}
		err := l.span(ctx, s)
		l.part.giveBack(s)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			l.progress()
			continue
		case errors.Is(err, errNoRanges):
			return err
		}
		f, ok := errors.AsType[*hub.Error](err)
		if !ok || !f.Retry {
			return err
		}
		if err := l.again(ctx, f); err != nil {
			return err
		}
	}
}

// progress resets the failures if the file has grown. A stream that restarts and breaks at the same place is no progress.
func (l *lane) progress() {
	if have := l.part.have.Load(); have > l.best {
		l.best, l.failures = have, 0
	}
}

// again waits before a retry, or returns the reason for giving up.
func (l *lane) again(ctx context.Context, f *hub.Error) error {
	l.progress()
	l.failures++
	if l.failures > l.tune.attempts {
		return &hub.Error{
			Kind: f.Kind, RetryAfter: f.RetryAfter, Cause: f,
			Message: fmt.Sprintf("Given up after %d tries without a byte. %s What was fetched is kept: resume the download when that is "+
				"fixed.", l.failures, f.Message),
		}
	}
	wait := min(l.tune.lastRetry, l.tune.FirstRetry<<min(l.failures-1, 30))
	wait -= time.Duration(rand.Int64N(int64(wait)/4 + 1)) //nolint:gosec // so that many don't come back at once
	if f.RetryAfter > 0 {
		wait = f.RetryAfter
		l.gate.shut(time.Now().Add(wait))
	}
	l.retry(f)
	return outbound.Sleep(ctx, wait)
}

func (l *lane) span(ctx context.Context, s span) error {
	if err := l.gate.wait(ctx); err != nil {
		return err
	}
	ctx, dog := outbound.WithWatchdog(ctx, cmp.Or(l.hub.Stall, l.tune.Stall))
	defer dog.Stop()
	whole := l.whole.Load()
	if whole && l.part.have.Load() > 0 {
		if err := l.part.reset(); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.address, nil)
	if err != nil {
		return hub.Errorf(hub.Internal, "asking for %s: %w", l.part.want.Path, err)
	}
	request.Header.Set("Accept-Encoding", "identity")
	partial := !whole && s != span{0, l.part.want.Size}
	if partial {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", s.From, s.To-1))
		if tag := l.part.tag(); tag != "" && !strings.HasPrefix(tag, "W/") { // a weak tag isn't allowed here
			request.Header.Set("If-Range", tag)
		}
	}
	response, err := l.client.Do(request)
	if err != nil {
		return hub.NoAnswer(ctx, l.hub, err)
	}
	defer response.Body.Close()
	if s, err = l.accept(response, s, partial); err != nil {
		return err
	}
	if response.StatusCode == http.StatusPartialContent {
		l.accepted()
	}
	return l.copy(ctx, dog, response, s)
}

// accept checks a response and returns the span that its body holds.
func (l *lane) accept(response *http.Response, s span, partial bool) (span, error) {
	want := l.part.want
	tag := response.Header.Get("ETag")
	switch response.StatusCode {
	case http.StatusPartialContent:
		if !partial {
			return s, hub.Temporary(hub.HubFailed, "%s sends a part of %s that nobody asked for. Try again later.", l.hub.Name(), want.Path)
		}
		from, to, total, ok := contentRange(response.Header.Get("Content-Range"))
		if !ok || from != s.From || to > s.To || to <= from {
			return s, hub.Temporary(hub.HubFailed, "%s answers for bytes %d to %d of %s with others (%q). Try again later.",
				l.hub.Name(), s.From, s.To-1, want.Path, response.Header.Get("Content-Range"))
		}
		if total >= 0 && total != want.Size {
			return s, l.otherSize(total)
		}
		if !l.part.learn(tag) {
			return s, l.otherVersion()
		}
		return span{from, to}, nil
	case http.StatusOK:
		if length := response.ContentLength; length >= 0 && length != want.Size {
			return s, l.otherSize(length)
		}
		if !l.part.learn(tag) {
			return s, l.otherVersion()
		}
		if partial {
			l.whole.Store(true)
			if l.part.have.Load() > 0 {
				return s, errNoRanges
			}
		}
		return span{0, want.Size}, nil
	default:
		return s, hub.Refused(l.hub, want.Path+" of "+l.repo, l.repo, response)
	}
}

func (l *lane) otherSize(size int64) error {
	return hub.Differs(hub.OtherSize, "%s sends %d bytes for %s, but its list says %d: the file has changed, or the hub is wrong.",
		l.hub.Name(), size, l.part.want.Path, l.part.want.Size)
}

func (l *lane) otherVersion() error {
	return hub.Differs(hub.OtherTag, "%s sends another version of %s than before: the file has changed.", l.hub.Name(), l.part.want.Path)
}

var contentRangeForm = regexp.MustCompile(`^bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)$`)

// contentRange parses a Content-Range header. The range is [from, to); total is -1 if the header doesn't give it.
func contentRange(value string) (from, to, total int64, ok bool) {
	m := contentRangeForm.FindStringSubmatch(value)
	if m == nil {
		return 0, 0, 0, false
	}
	from, _ = strconv.ParseInt(m[1], 10, 64)
	to, _ = strconv.ParseInt(m[2], 10, 64)
	total = -1
	if m[3] != "*" {
		total, _ = strconv.ParseInt(m[3], 10, 64)
	}
	return from, to + 1, total, true
}

func (l *lane) copy(ctx context.Context, dog *outbound.Watchdog, response *http.Response, s span) error {
	block := blocks.Get().(*[]byte)
	defer blocks.Put(block)
	for at := s.From; at < s.To; {
		n, err := response.Body.Read((*block)[:min(int64(len(*block)), s.To-at)])
		if n > 0 {
			dog.Alive()
			if err := l.part.write((*block)[:n], at); err != nil {
				return err
			}
			at += int64(n)
			l.meter(n)
		}
		if at == s.To || err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%d bytes are missing at the end", s.To-at)
		}
		return hub.NoAnswer(ctx, l.hub, err)
	}
	// without a Content-Length the body may be longer
	if response.ContentLength < 0 && s.To == l.part.want.Size {
		if n, _ := io.ReadFull(response.Body, (*block)[:1]); n > 0 {
			return hub.Differs(hub.OtherSize,
				"%s sends more than the %d bytes that its list says for %s: the file has changed, or the hub is wrong.",
				l.hub.Name(), l.part.want.Size, l.part.want.Path)
		}
	}
	return nil
}

// ranges downloads one file into a part, by byte ranges. go-getter, which fetches engines, isn't used: it only appends to a file in one
// stream, resumes without If-Range, appends the whole body if a server ignores the range, and hashes in a step that can't be interrupted.
type ranges struct {
	hub    *hub.Hub
	client *http.Client
	tune   tuning
	part   *part
	repo   string
	lanes  int              // number of parallel ranges
	meter  func(n int)      // called with the number of bytes received
	retry  func(*hub.Error) // called with the reason of each retry
	gate   *gate            // the hub's

	whole atomic.Bool // the server doesn't support ranges
}

// get downloads the missing bytes of the part. The error is a *hub.Error, or the context's.
func (r *ranges) get(ctx context.Context, address string) error {
	defer every(ctx, r.tune.checkpoint, func() {
		_ = r.part.save() // a failure costs bytes only after a crash; closing the part saves again
	})()
	for {
		err := r.lanesOf(ctx, address)
		if !errors.Is(err, errNoRanges) {
			return err
		}
		if err := r.part.reset(); err != nil { // the server sends the whole file only
			return err
		}
	}
}

// errNoRanges says that the server ignores ranges.
var errNoRanges = errors.New("the server knows no ranges")

// lanesOf downloads the missing bytes, with one lane until the server has answered a range request, then with more.
func (r *ranges) lanesOf(ctx context.Context, address string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	following, unfollow := context.WithCancel(ctx)
	var all, follower sync.WaitGroup
	follower.Go(func() { r.part.follow(following) })
	defer follower.Wait()
	defer unfollow()

	var failed error
	var once, more sync.Once
	start := func(accepted func()) {
		l := &lane{ranges: r, address: address, accepted: accepted}
		if err := l.run(ctx); err != nil {
			once.Do(func() { failed = err })
			cancel(err)
		}
	}
	all.Go(func() {
		start(func() {
			more.Do(func() {
				for range r.lanes - 1 {
					all.Go(func() { start(func() {}) })
				}
			})
		})
	})
	all.Wait()
	return failed
}

func (r *ranges) most() int64 {
	if r.whole.Load() || r.lanes == 1 {
		return r.part.want.Size
	}
	return r.tune.chunk
}

// blocks are the buffers for copying.
var blocks = sync.Pool{New: func() any { b := make([]byte, 512<<10); return &b }}
