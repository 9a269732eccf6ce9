package api

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeremote"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// TestRemote_IsBackSoonAfterAnOutage: requests wait for a short one, and the remote gets requests again soon after its return. What is said of it
// is true in between.
func TestRemote_IsBackSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	const clients = 4
	for _, tt := range []struct {
		kind   string
		http2  bool
		outage time.Duration
		most   int64 // refusals
	}{
		{"vllm", false, 200 * time.Millisecond, 5},
		{"sglang", true, 500 * time.Millisecond, 5},
		{"vllm", false, 500 * time.Millisecond, 5},
		{"vllm", false, 3 * time.Second, 3 * clients},
	} {
		t.Run(tt.kind+" "+tt.outage.String(), func(t *testing.T) {
			t.Parallel()
			far := fakeremote.Start(t, tt.kind, tt.http2, "Org/Far")
			s := serve(t, &fakeengine.Script{}, withRemotes(far))
			s.await("org/far")
			var refused atomic.Int64
			var isOver atomic.Bool
			var asking sync.WaitGroup
			defer asking.Wait()
			defer isOver.Store(true)
			back := make(chan struct{}, clients)
			var isBack atomic.Bool
			for range clients {
				asking.Go(func() {
					for !isOver.Load() {
						wasBack := isBack.Load()
						got := s.say("org/far", "hi", "")
						switch {
						case got.status == http.StatusOK && isBack.Load():
							select {
							case back <- struct{}{}:
							default:
							}
						case got.status == http.StatusServiceUnavailable && !wasBack:
							refused.Add(1)
						case got.status != http.StatusOK:
							t.Errorf("%d %s", got.status, got.body)
						}
					}
				})
			}
			far.SetDown(true)
			<-time.After(tt.outage)
			testkit.Eventually(t, "the outage is noticed", func() bool {
				remotes := s.node.Remotes.List()
				return len(remotes) == 1 && remotes[0].Away != ""
			})
			isBack.Store(true)
			far.SetDown(false)
			select {
			case <-back:
			case <-time.After(10 * time.Second): // its list is asked for after 30
				t.Error("it isn't back soon")
			}
			if n := refused.Load(); n > tt.most {
				t.Errorf("%d requests were refused, want at most %d", n, tt.most)
			}
		})
	}
}
