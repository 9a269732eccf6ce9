package mlxlm

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func setupOf(t *testing.T, command ...string) process.Setup {
	t.Helper()
	return process.Setup{
		Path: func() string { return "" }, Command: func() []string { return command }, Runtimes: t.TempDir(), Log: slog.New(slog.DiscardHandler),
	}
}

// start starts a supervisor of a fake mlx_lm.server, with nothing loaded.
func start(t *testing.T, script *fakemlx.Script, stall time.Duration) (*supervisor.Supervisor, *fakemlx.Engine) {
	t.Helper()
	if script == nil {
		script = &fakemlx.Script{}
	}
	script.AnyModel = true
	for i := range script.Cases {
		script.Cases[i].Script.AnyModel = true
	}
	fake := fakemlx.Install(t, script)
	options := supervisor.Options{Options: process.Options{Journal: filepath.Join(t.TempDir(), "engines"), Stall: func() time.Duration { return stall }}}
	s := supervisor.New(map[string]process.Program{"mlx_lm": &Process{setup: setupOf(t, fake.Path)}}, options, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		s.Close()
		for _, ev := range fake.Events() {
			if ev.Kind == fakekit.Started || ev.Kind == fakekit.Forked {
				fake.WaitGone(t, ev.PID)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(options.Journal, "*")); len(left) > 0 {
			t.Errorf("left in the journal: %v", left)
		}
	})
	return s, fake
}

func spec(parallel int) *schedule.Spec {
	return &schedule.Spec{
		Engine: "mlx_lm", Model: catalog.Model{Key: "m", Path: "/models/m", Type: catalog.TypeLLM}, ContextLength: 512, Parallel: parallel,
		NoSandbox: Engine().NoSandbox,
	}
}

func acquire(t *testing.T, s *supervisor.Supervisor) (*supervisor.Lease, error) {
	t.Helper()
	lease, err := s.Acquire(t.Context(), schedule.Demand{Key: "m", Slots: 1, Spec: spec(4), MayLoad: true}, nil)
	if err == nil {
		t.Cleanup(lease.Release)
	}
	return lease, err
}

func mustAcquire(t *testing.T, s *supervisor.Supervisor) *supervisor.Lease {
	t.Helper()
	lease, err := acquire(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// complete sends a request and reads its answer to the end.
func complete(ctx context.Context, l *supervisor.Lease) (string, error) {
	resp, err := l.Post(ctx, "/v1/completions", []byte(`{"model":"default_model","prompt":"Hello","max_tokens":50,"stream":true,"stream_options":{"include_usage":true}}`))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	if err == nil && !strings.Contains(string(body), "[DONE]") {
		err = io.ErrUnexpectedEOF
	}
	return string(body), err
}

func isReady(s *supervisor.Supervisor) bool {
	for _, in := range s.Instances() {
		if in.Status == schedule.Ready {
			return true
		}
	}
	return false
}

// The server listens long before its model is loaded.
func TestLoad_IsReadyOnlyWhenTheTrialIsAnswered(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakemlx.Script{Load: fakemlx.Load{Gate: "load"}}, time.Minute)
	loaded := make(chan error, 1)
	go func() {
		_, err := s.Load(t.Context(), spec(4), nil)
		loaded <- err
	}()
	fake.Wait(t, func(ev fakekit.Event) bool { return ev.Kind == fakekit.Request && ev.Path == "/v1/completions" }) // the trial waits
	if isReady(s) {
		t.Error("it counts as ready before its model is loaded")
	}
	fake.Release("load")
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	lease := mustAcquire(t, s)
	if answer, err := complete(t.Context(), lease); err != nil {
		t.Errorf("answer %q, error %v", answer, err)
	}
	if info := lease.Instance; !strings.HasPrefix(info.Sandbox, "off: Python") || info.Build.Version != "0.32.0" || info.Build.Engine != "mlx-lm" {
		t.Errorf("sandbox %q, build %+v", info.Sandbox, info.Build)
	}
}

func TestLoad_Fails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script fakemlx.Script
		want   string // of the error
		starts int
	}{
		"with an exception in its thread": {
			fakemlx.Script{Load: fakemlx.Load{Fail: "ValueError: Model type foobar not supported."}},
			"The model m could not be loaded: ValueError: Model type foobar not supported; the engine's generation thread ended", 1,
		},
		"for want of memory": {
			fakemlx.Script{Load: fakemlx.Load{Fail: "RuntimeError: [metal::malloc] Resource limit (499000) exceeded"}}, "It ran out of memory, also after room was made", 2,
		},
		"as the first request tells": {
			fakemlx.Script{Rules: []fakekit.Rule{{Contains: `"max_tokens":1`, Status: 404, Body: `{"error": "No safetensors found in /srv/models/m"}`}}},
			"The model m could not be loaded: No safetensors found in m", 1,
		},
		"by dying": {
			fakemlx.Script{Load: fakemlx.Load{Die: &fakekit.Death{Code: 1, Lines: []string{"ModuleNotFoundError: No module named 'mlx'"}}}},
			"The model m could not be loaded: No module named 'mlx'", 1,
		},
		"as every port is taken": {fakemlx.Script{PortTaken: true}, "it couldn't listen on its port", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, fake := start(t, &c.script, time.Minute)
			_, err := acquire(t, s)
			var refused schedule.Error
			if !errors.As(err, &refused) || refused.Kind != schedule.LoadFailed || !strings.Contains(refused.Message, c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "/srv") || strings.Contains(refused.Message, ".py") {
				t.Errorf("the error has paths of the server: %v", err)
			}
			if n := startsOf(fake); n != c.starts {
				t.Errorf("%d starts, want %d", n, c.starts)
			}
		})
	}
}

func startsOf(fake *fakemlx.Engine) (n int) {
	for _, ev := range fake.Events() {
		if ev.Kind == fakekit.Started {
			n++
		}
	}
	return n
}

// Its port may be taken between the choice of the port and the start.
func TestLoad_AnotherPortIsTried(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakemlx.Script{Cases: []fakemlx.Case{{Start: 1, Script: fakemlx.Script{PortTaken: true}}}}, time.Minute)
	if answer, err := complete(t.Context(), mustAcquire(t, s)); err != nil {
		t.Errorf("answer %q, error %v", answer, err)
	}
	if n := startsOf(fake); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
}

// A load that computes may be silent for longer than the stall timeout; one that sleeps may not.
func TestLoad_Silent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		load fakemlx.Load
		want string
	}{
		"computing": {fakemlx.Load{Gate: "load", Busy: true}, ""},
		"sleeping":  {fakemlx.Load{Hang: true}, "the engine wrote nothing for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, fake := start(t, &fakemlx.Script{Load: c.load}, 3*time.Second)
			loaded := make(chan error, 1)
			began := time.Now()
			go func() {
				_, err := s.Load(t.Context(), spec(4), nil)
				loaded <- err
			}()
			if c.want != "" {
				if err := <-loaded; err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v", err)
				}
				return
			}
			fake.Wait(t, func(ev fakekit.Event) bool { return ev.Kind == fakekit.Request })
			select {
			case err := <-loaded:
				t.Fatalf("it ended after %v: %v", time.Since(began), err)
			case <-time.After(8 * time.Second): // much longer than the timeout
			}
			fake.Release("load")
			if err := <-loaded; err != nil {
				t.Error(err)
			}
		})
	}
}

// A thread that has died takes no more requests, although the server goes on accepting them.
func TestServe_ADeadThreadIsACrash(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakemlx.Script{Cases: []fakemlx.Case{{Start: 1, Script: fakemlx.Script{Rules: []fakekit.Rule{
		{Nth: 1, Cues: []fakekit.Cue{{After: 1, Gate: "never"}}},
		{Nth: 2, Cues: []fakekit.Cue{{After: 1, Gate: "both", Do: fakekit.Fault, Message: "ValueError: top_k has to be an integer"}}},
	}}}}}, time.Minute)
	first, second := mustAcquire(t, s), mustAcquire(t, s)
	ended := make(chan error, 2)
	send := func(l *supervisor.Lease) {
		_, err := complete(t.Context(), l)
		ended <- err
	}
	go send(first)
	fake.Wait(t, fakekit.At("never"))
	go send(second)
	fake.Wait(t, fakekit.At("both"))
	fake.Release("both")
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("an answer ended well, though its thread had died")
		}
	}
	for _, l := range []*supervisor.Lease{first, second} {
		if loss := l.Lost(t.Context(), nil); loss != (process.Loss{Kind: process.Ended}) {
			t.Errorf("the loss is %+v", loss)
		}
	}
	if answer, err := complete(t.Context(), mustAcquire(t, s)); err != nil {
		t.Errorf("a fresh process: answer %q, error %v", answer, err)
	}
	if c := s.Counts()["m"]; c.Crashes != 1 {
		t.Errorf("counts %+v", c)
	}
}

func TestServe_UnloadIsQuick(t *testing.T) {
	t.Parallel()
	s, fake := start(t, nil, time.Minute)
	lease := mustAcquire(t, s)
	lease.Release()
	if err := s.Unload(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	fake.WaitGone(t, lease.Instance.PID)
	for _, ev := range fake.Events() {
		if ev.Kind == fakekit.Asked {
			t.Errorf("it was asked to end: %+v", ev)
		}
	}
}
