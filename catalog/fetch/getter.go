package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	getter "github.com/hashicorp/go-getter/v2"
)

// ranges is a go-getter Getter that fetches one file in ranges into a part.
//
// It stands in for go-getter's own HttpGetter, which knows a single stream at the end of a file: it asks for the rest
// without If-Range, appends a whole body where a server ignores the range, tells no status and no header of the answer,
// and can't fetch parts in parallel. Nor is go-getter's checksum used, which hashes everything before and after, in one
// go that can't be interrupted. Its client is what files are asked for through, as ever with nothing but this getter, no
// decompressors and no links followed.
type ranges struct {
	hub    *hub
	client *http.Client
	tune   tuning
	part   *part
	repo   string
	lanes  int          // parts at a time
	meter  func(n int)  // told of bytes that came
	retry  func(*Error) // told of what is tried again
	gate   *gate        // of the hub

	whole atomic.Bool // the server knows no ranges
}

// get fetches what is missing of the part. The error is a *fault, or the context's.
func (r *ranges) get(ctx context.Context, address string) error {
	client := &getter.Client{
		Getters:         []getter.Getter{r},
		Decompressors:   map[string]getter.Decompressor{}, // nil would mean all of them
		DisableSymlinks: true,
	}
	// go-getter reads these in its own way
	if strings.Contains(strings.TrimPrefix(address, r.hub.base.Scheme+"://"), "//") || strings.Contains(address, "::") {
		return fatal(Unsafe, "%s is an address that won't be fetched.", address)
	}
	_, err := client.Get(ctx, &getter.Request{Src: address, Dst: r.part.name + partSuffix, GetMode: getter.ModeFile})
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

// GetFile implements [getter.Getter]. The part knows its own place, which the request's Dst only names.
func (r *ranges) GetFile(ctx context.Context, request *getter.Request) error {
	defer every(ctx, r.tune.checkpoint, func() {
		_ = r.part.save() // a failure only costs bytes after a crash; if it lasts, closing the part fails, too
	})()
	for {
		err := r.lanesOf(ctx, request.URL().String())
		if !errors.Is(err, errNoRanges) {
			return err
		}
		if err := r.part.reset(); err != nil { // one stream from the start is the only way
			return err
		}
	}
}

// errNoRanges says that the server sends the whole file whatever it is asked for.
var errNoRanges = errors.New("the server knows no ranges")

// lanesOf fetches what is missing: one lane first, and more of them once the server has shown that it knows ranges.
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

// most is the longest span that one request asks for.
func (r *ranges) most() int64 {
	if r.whole.Load() || r.lanes == 1 {
		return r.part.want.Size
	}
	return r.tune.chunk
}

// blocks are what bytes are copied by.
var blocks = sync.Pool{New: func() any { b := make([]byte, 512<<10); return &b }}

// Interface guards.
var (
	_ getter.Getter = (*ranges)(nil)
	_ io.ReaderAt   = (*os.File)(nil)
)
