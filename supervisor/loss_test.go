package supervisor

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// stall is how long an engine may be silent: long enough for one that is starting beside other work, or short once one hangs.
type stall struct{ isSoon atomic.Bool }

func (l *stall) limit() time.Duration {
	if l.isSoon.Load() {
		return time.Second
	}
	return 12 * time.Second // a quarter of it passes before a silence is looked into
}

// sent sends a request, and tells how it ended.
func sent(ctx context.Context, lease *Lease) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := chat(ctx, lease)
		ended <- err
	}()
	return ended
}

func TestLoss_OfAStuckEngine(t *testing.T) {
	t.Parallel()
	stuck := []fakeengine.Rule{{Times: 1, Cues: []fakeengine.Cue{{After: 1, Gate: "stick", Do: fakeengine.Stick}}}}
	for name, leaves := range map[string]bool{"its client waits": false, "its client has left": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l stall
			s, fake := startWith(t, &fakeengine.Script{Cases: []fakeengine.Case{{Start: 1, Script: fakeengine.Script{Rules: stuck}}}}, Options{Options: process.Options{Stall: l.limit}}, nil)
			lease := acquire(t, s, want("m", 1))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			ended := sent(ctx, lease)
			fake.Wait(t, fakeengine.At("stick"))
			fake.Release("stick")
			fake.Wait(t, fakeengine.Is(fakeengine.Stuck))
			l.isSoon.Store(true)
			if leaves {
				leave()
				if err := <-ended; err == nil {
					t.Error("the request was answered")
				}
				lease.Release()
			} else {
				err := <-ended
				if got, want := lease.Lost(t.Context(), err), (process.Loss{Kind: process.Hung, Alone: true}); got != want {
					t.Errorf("the loss is %+v, want %+v", got, want)
				}
				lease.Release()
			}
			testkit.Eventually(t, "it is ended", func() bool {
				for _, in := range s.Instances() {
					if in.PID == lease.Instance.PID && in.Status == schedule.Ready {
						return false
					}
				}
				return true
			})
			l.isSoon.Store(false)
			if works(t, s).Instance.PID == lease.Instance.PID {
				t.Error("the stuck engine was lent again")
			}
			if o := s.Overview(); len(o.Failing) > 0 {
				t.Errorf("the model is left alone: %+v", o.Failing)
			}
		})
	}
}

// A slow engine isn't ended, though all of its steps together take longer than it may be silent, and though one request hears
// nothing at all for longer.
func TestLoss_ASlowEngineLivesOn(t *testing.T) {
	t.Parallel()
	const most = 5 * time.Second
	s, fake := startWith(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: "never", Gate: "never"},
		{PromptTokens: 10, PromptDelay: most / 3},
	}}, Options{Options: process.Options{Stall: func() time.Duration { return most }}}, nil)
	spec := fakeSpec("m", 2)
	spec.Args = []string{"-b", "2"}
	silent := acquire(t, s, schedule.Demand{Key: "m", Slots: 1, Spec: spec, MayLoad: true})
	slow := acquire(t, s, schedule.Demand{Key: "m", Slots: 1, Spec: spec, MayLoad: true})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	go func() {
		resp, err := silent.Post(ctx, "/v1/chat/completions", []byte(`{"messages":[{"role":"user","content":"never"}],"stream":true}`))
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	fake.Wait(t, fakeengine.At("never"))
	resp, err := slow.Post(t.Context(), "/v1/chat/completions", []byte(`{"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err) // no stream: only the list of slots tells that it gets on
	}
	_ = resp.Body.Close()
	if c := s.Counts()["m"]; c.Crashes != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestLoss_TheServerShutsDown(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 1, Gate: "never"}}}}})
	lease := acquire(t, s, want("m", 1))
	ended := sent(t.Context(), lease)
	fake.Wait(t, fakeengine.At("never"))
	s.Close()
	if err := <-ended; err == nil || strings.Contains(err.Error(), "EOF") {
		t.Errorf("error %v", err)
	}
	if got := lease.Lost(t.Context(), nil); got.Kind != process.ShutDown {
		t.Errorf("the loss is %+v", got)
	}
}
