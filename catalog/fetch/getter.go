package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-getter/v2"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

// ranges is a go-getter Getter that downloads one file into a part, by byte ranges.
//
// It replaces go-getter's HttpGetter, which only appends to a file in one stream: it resumes without If-Range, appends the
// whole body if a server ignores the range, hides the status and headers of responses, and can't download parts in parallel.
// go-getter's checksum isn't used either, since it hashes the whole file before and after in a step that can't be interrupted.
// The go-getter client has no other getter, no decompressors, and follows no links.
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

// get downloads the missing bytes of the part. The error is a *fault, or the context's.
func (r *ranges) get(ctx context.Context, address string) error {
	client := &getter.Client{
		Getters:         []getter.Getter{r},
		Decompressors:   map[string]getter.Decompressor{}, // nil means all of them
		DisableSymlinks: true,
	}
	// go-getter gives these a meaning of its own
	if strings.Contains(strings.TrimPrefix(address, r.hub.Base.Scheme+"://"), "//") || strings.Contains(address, "::") {
		return hub.Permanent(hub.Unsafe, "%s is an address that won't be fetched.", address)
	}
	_, err := client.Get(ctx, &getter.Request{Src: address, Dst: r.part.name + hub.PartSuffix, GetMode: getter.ModeFile})
	return err
}

// Detect implements [getter.Getter].
func (r *ranges) Detect(request *getter.Request) (bool, error) {
	u, err := url.Parse(request.Src)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http"), nil
}

// Mode implements [getter.Getter].
func (r *ranges) Mode(context.Context, *url.URL) (getter.Mode, error) { return getter.ModeFile, nil }

// Get implements [getter.Getter].
func (r *ranges) Get(context.Context, *getter.Request) error {
	return errors.New("folders are fetched file by file")
}

// GetFile implements [getter.Getter]. The request's Dst is ignored: the part knows its file.
func (r *ranges) GetFile(ctx context.Context, request *getter.Request) error {
	defer every(ctx, r.tune.checkpoint, func() {
		_ = r.part.save() // a failure costs bytes only after a crash; closing the part saves again
	})()
	for {
		err := r.lanesOf(ctx, request.URL().String())
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
