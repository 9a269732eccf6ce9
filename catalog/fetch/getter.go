package fetch

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

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
