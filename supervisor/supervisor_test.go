package supervisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// start runs a supervisor whose llama-server is the fake engine. After the test nothing may be left of it.
func start(t *testing.T, script *fakeengine.Script) (*Supervisor, *fakeengine.Engine) {
	t.Helper()
	return startWith(t, script, Options{}, nil)
}

// startWith starts it with options, and with another process in place of llama-server's, if wrap isn't nil.
func startWith(t *testing.T, script *fakeengine.Script, options Options, wrap func(process.Program) process.Program) (*Supervisor, *fakeengine.Engine) {
	t.Helper()
	fake := fakeengine.Install(t, script)
	engine := LlamaServer(func() (string, error) { return fake.Path, nil })
	if wrap != nil {
		engine = wrap(engine)
	}
	options.Journal = filepath.Join(t.TempDir(), "engines")
	s := New(map[string]process.Program{"llama_server": engine}, options, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		s.Close()
		for _, ev := range fake.Events() {
			if ev.Kind == fakeengine.Started || (ev.Kind == fakeengine.Forked && (runtime.GOOS == "linux" || !script.Grandchild.Setsid)) {
				fake.WaitGone(t, ev.PID)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(options.Journal, "*")); len(left) > 0 {
			t.Errorf("left in the journal: %v", left)
		}
	})
	return s, fake
}

func fakeSpec(key string, parallel int) *schedule.Spec {
	return &schedule.Spec{Engine: "llama_server", Model: catalog.Model{Key: key, Path: "/models/" + key + ".gguf"}, ContextLength: 512, Parallel: parallel, Unconfined: true}
}

func want(key string, parallel int) schedule.Demand {
	return schedule.Demand{Key: key, Slots: 1, Spec: fakeSpec(key, parallel), MayLoad: true}
}

func acquire(t *testing.T, s *Supervisor, d schedule.Demand) *Lease {
	t.Helper()
	lease, err := s.Acquire(t.Context(), d, nil)
	if err != nil {
		t.Fatalf("acquiring %s: %v", d.Key, err)
	}
	t.Cleanup(lease.Release)
	return lease
}

// chat sends a request and reads its answer to the end.
func chat(ctx context.Context, l *Lease) (string, error) {
	resp, err := l.Post(ctx, "/v1/chat/completions", []byte(`{"messages":[{"role":"user","content":"hi"}],"stream":true}`))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(body), err
}

func starts(fake *fakeengine.Engine) []fakeengine.Event {
	return slices.DeleteFunc(fake.Events(), func(ev fakeengine.Event) bool { return ev.Kind != fakeengine.Started })
}

// TestSupervisor_ConfiguresWhileItLaunches: with the race detector, it fails if a launch reads what new settings replace.
func TestSupervisor_ConfiguresWhileItLaunches(t *testing.T) {
	s, _ := start(t, nil)
	for range 20 {
		spec := fakeSpec("a/b", 1)
		loaded := make(chan error, 1)
		go func() {
			_, err := s.Load(t.Context(), spec, nil)
			loaded <- err
		}()
		var gen uint64
		testkit.Eventually(t, "it is launched", func() bool {
			all := s.Instances()
			if len(all) == 1 {
				gen = all[0].Gen
			}
			return gen > 0
		})
		pinned := fakeSpec("a/b", 1)
		pinned.Pinned = true
		s.Handle(schedule.Configured{Specs: map[uint64]*schedule.Spec{gen: pinned}})
		if err := <-loaded; err != nil {
			t.Fatal(err)
		}
		if all := s.Instances(); len(all) != 1 || !all[0].Spec.Pinned {
			t.Errorf("%+v", all)
		}
		if err := s.Unload(t.Context(), "a/b"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSupervisor_LaunchesWithWhatItWasTold(t *testing.T) {
	t.Setenv("LLAMA_ARG_CTX_SIZE", "99")
	s, fake := start(t, nil)
	spec := fakeSpec("a/b", 2)
	spec.Args, spec.PromptCache = []string{"--threads", "1"}, 100<<20
	info, err := s.Load(t.Context(), spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	began := fake.Wait(t, fakeengine.Is(fakeengine.Started))
	line := strings.Join(began.Argv, " ")
	for _, part := range []string{"-m /models/a/b.gguf", "--host " + info.Address, "-a a/b", "-c 1024", "-np 2", "--cache-ram 100", "--threads 1", "--no-ui", "--offline"} {
		if !strings.Contains(line, part) {
			t.Errorf("arguments %q lack %q", line, part)
		}
	}
	if began.Env["LLAMA_API_KEY"] == "" || strings.Contains(line, began.Env["LLAMA_API_KEY"]) {
		t.Errorf("the key must be in the environment and not in the arguments; environment %v", began.Env)
	}
	if _, leaked := began.Env["LLAMA_ARG_CTX_SIZE"]; leaked {
		t.Error("an option of the engine came through our own environment")
	}
	if info.ID != "a/b" || info.Status != schedule.Ready || info.PID != began.PID || info.Build.Version != "b11669" {
		t.Errorf("info %+v", info)
	}
}

func TestSupervisor_ManyFirstRequestsLoadOnce(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load", Steps: 5}})
	var all sync.WaitGroup
	var waits []*Notifier
	for range 100 {
		wanted := want("m", 2)
		notifier := NewNotifier()
		waits = append(waits, notifier)
		all.Go(func() {
			lease, err := s.Acquire(t.Context(), wanted, notifier)
			if err != nil {
				t.Error(err)
				return
			}
			defer lease.Release()
			if lease.LoadTime == 0 {
				t.Error("who waited for a load is to be told how long it took")
			}
			if answer, err := chat(t.Context(), lease); err != nil || !strings.Contains(answer, "[DONE]") {
				t.Errorf("answer %q, error %v", answer, err)
			}
		})
	}
	fake.Wait(t, fakeengine.At("load"))
	for _, wait := range waits {
		<-wait.C() // the request waits for the load
	}
	fake.Release("load")
	all.Wait()
	if n := len(starts(fake)); n != 1 {
		t.Errorf("%d processes were started, want 1", n)
	}
	for _, ev := range fake.Events() {
		if ev.Kind == fakeengine.Queued {
			t.Fatalf("the engine was sent more than its slots hold: %v", ev)
		}
	}
}

func TestSupervisor_AFailedLoadTellsTheEnginesReason(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Load: fakeengine.Load{Fail: fakeengine.LoadError("unknown model architecture: 'foobar'")}})
	_, err := s.Acquire(t.Context(), want("m", 1), nil)
	var refused schedule.Error
	if !errors.As(err, &refused) || refused.Kind != schedule.LoadFailed || !strings.Contains(refused.Message, "unknown model architecture: 'foobar'") {
		t.Fatalf("error %v", err)
	}
	fake.Set(func(script *fakeengine.Script) { script.Load.Fail = nil })
	if _, err := chat(t.Context(), acquire(t, s, want("m", 1))); err != nil {
		t.Errorf("the next request: %v", err)
	}
}

func TestSupervisor_AnotherPortIsTriedWhenOneIsTaken(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Cases: []fakeengine.Case{{Start: 1, Script: fakeengine.Script{PortTaken: true}}}})
	if _, err := chat(t.Context(), acquire(t, s, want("m", 1))); err != nil {
		t.Error(err)
	}
	if n := len(starts(fake)); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
}

func TestSupervisor_NoEngineIsAnErrorThatSaysSo(t *testing.T) {
	t.Parallel()
	engine := LlamaServer(func() (string, error) { return "", errors.New("nowhere to be found") })
	s := New(map[string]process.Program{"llama_server": engine}, Options{}, slog.New(slog.DiscardHandler))
	defer s.Close()
	_, err := s.Acquire(t.Context(), want("m", 1), nil)
	if err == nil || !strings.Contains(err.Error(), "nowhere to be found") {
		t.Errorf("error %v", err)
	}
}

func TestSupervisor_ACrashIsFollowedByAFreshInstance(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Times: 1, Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}}})
	first := acquire(t, s, want("m", 1))
	if answer, err := chat(t.Context(), first); err == nil && strings.Contains(answer, "[DONE]") {
		t.Fatalf("the engine was to crash, but answered %q", answer)
	}
	first.Release()
	fake.Set(func(script *fakeengine.Script) { script.Rules = nil })
	testkit.Eventually(t, "the dead instance is known to be", func() bool { return len(s.Instances()) == 0 })
	second := acquire(t, s, want("m", 1))
	if _, err := chat(t.Context(), second); err != nil {
		t.Error(err)
	}
	if first.Instance.PID == second.Instance.PID {
		t.Error("the dead process was lent again")
	}
}

func TestSupervisor_GivingUpFreesWhatWasWaitedFor(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}})
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error)
	go func() {
		_, err := s.Acquire(ctx, want("m", 1), nil)
		gaveUp <- err
	}()
	fake.Wait(t, fakeengine.At("load"))
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	fake.Release("load")
	if _, err := chat(t.Context(), acquire(t, s, want("m", 1))); err != nil {
		t.Error(err)
	}
}

func TestSupervisor_AClientThatGoesEndsTheEnginesWork(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Hang}}}}})
	lease := acquire(t, s, want("m", 1))
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := lease.Post(ctx, "/v1/chat/completions", []byte(`{"messages":[],"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cancel()
	fake.Wait(t, fakeengine.Is(fakeengine.Cancelled))
}

func TestSupervisor_UnloadWaitsForABusyInstance(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Gate: "answer"}}})
	lease := acquire(t, s, want("m", 2))
	answered := make(chan error, 1)
	go func() {
		answer, err := chat(t.Context(), lease)
		if err == nil && !strings.Contains(answer, "[DONE]") {
			err = errors.New("cut: " + answer)
		}
		answered <- err
		lease.Release()
	}()
	fake.Wait(t, fakeengine.At("answer"))
	unloaded := make(chan error, 1)
	go func() { unloaded <- s.Unload(t.Context(), "m") }()
	testkit.Eventually(t, "the instance drains", func() bool {
		all := s.Instances()
		return len(all) == 1 && all[0].Status == schedule.Draining
	})
	fake.Release("answer")
	if err := <-answered; err != nil {
		t.Errorf("the request that was running: %v", err)
	}
	if err := <-unloaded; err != nil {
		t.Error(err)
	}
	if left := s.Instances(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestSupervisor_StopsWhatWillNotStop(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]*fakeengine.Script{
		"deaf":        {Stop: fakeengine.Stop{IgnoreTerm: true, IgnoreExit: true, IgnoreEOF: true}},
		"stuck load":  {Load: fakeengine.Load{Hang: true}},
		"grandchild":  {Grandchild: &fakeengine.Grandchild{HoldPipes: true}},
		"long lines":  {Noise: []fakeengine.Noise{{Bytes: 4 << 20}, {Stdout: true, Bytes: 1 << 20}}},
		"many lines":  {Noise: []fakeengine.Noise{{When: fakeengine.AtReady, Bytes: 1 << 20, LineBytes: 80}}},
		"old and mad": {NoChildProtocol: true, Stop: fakeengine.Stop{IgnoreTerm: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, fake := start(t, script)
			ctx, cancel := context.WithCancel(t.Context())
			loaded := make(chan struct{})
			go func() {
				defer close(loaded)
				_, _ = s.Load(ctx, fakeSpec("m", 1), nil)
			}()
			began := fake.Wait(t, fakeengine.Is(fakeengine.Started))
			if !script.Load.Hang {
				<-loaded
			}
			if err := s.Unload(t.Context(), "m"); err != nil {
				t.Error(err)
			}
			cancel()
			<-loaded
			fake.WaitGone(t, began.PID)
			for _, ev := range fake.Events() {
				if ev.Kind == fakeengine.Forked {
					fake.WaitGone(t, ev.PID)
				}
			}
		})
	}
}

func TestSupervisor_CloseEndsWaitsAndRequests(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 1, Gate: "never"}}}}})
	lease := acquire(t, s, want("m", 1))
	ended := make(chan error, 2)
	go func() {
		answer, err := chat(t.Context(), lease)
		if err == nil && !strings.Contains(answer, "[DONE]") {
			err = io.ErrUnexpectedEOF
		}
		ended <- err
	}()
	fake.Wait(t, fakeengine.At("never"))
	go func() {
		_, err := s.Acquire(t.Context(), want("m", 1), nil)
		ended <- err
	}()
	s.Close()
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("a wait or a request ended well, though the engine is gone")
		}
	}
	if _, err := s.Acquire(t.Context(), want("m", 1), nil); !errors.Is(err, error(schedule.ErrClosing)) {
		t.Errorf("after the end: %v", err)
	}
	s.Close() // once more does no harm
}
