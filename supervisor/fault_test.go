package supervisor

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// kill ends a process from outside, as the system may.
func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

// works checks that a request is served.
func works(t *testing.T, s *Supervisor) *Lease {
	t.Helper()
	lease := acquire(t, s, want("m", 1))
	if answer, err := chat(t.Context(), lease); err != nil || !strings.Contains(answer, "[DONE]") {
		t.Errorf("answer %q, error %v", answer, err)
	}
	lease.Release()
	return lease
}

// refusal waits for a load to fail, and returns the reason.
func refusal(t *testing.T, s *Supervisor) schedule.Error {
	t.Helper()
	_, err := s.Acquire(t.Context(), want("m", 1), nil)
	var refused schedule.Error
	if !errors.As(err, &refused) || refused.Kind != schedule.LoadFailed {
		t.Fatalf("error %v, want one of a load that failed", err)
	}
	return refused
}

func TestFault_CrashWhileIdle(t *testing.T) {
	t.Parallel()
	s, _ := start(t, nil)
	first := works(t, s)
	kill(t, first.Instance.PID)
	testkit.Eventually(t, "the crash is known", func() bool { return len(s.Instances()) == 0 })
	second := works(t, s)
	c := s.Counts()["m"]
	if loads, _ := c.Loads.Cumulative(); second.Instance.PID == first.Instance.PID || c.Crashes != 1 || loads != 2 {
		t.Errorf("counts %+v", c)
	}
}

func TestFault_CrashWhileIdleOfAKeptInstance(t *testing.T) {
	t.Parallel()
	s, _ := start(t, nil)
	spec := fakeSpec("m", 1)
	spec.AutoRestart = true
	first, err := s.Load(t.Context(), spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	kill(t, first.PID)
	testkit.Eventually(t, "it is back", func() bool {
		all := s.Instances()
		return len(all) == 1 && all[0].ID == "m" && all[0].Status == schedule.Ready && all[0].PID != first.PID
	})
}

func TestFault_CrashInTheMiddleOfAStream(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 2, Gate: "two", Do: fakeengine.Hang}}}}})
	lease := acquire(t, s, want("m", 1))
	ended := make(chan error, 1)
	go func() {
		_, err := chat(t.Context(), lease)
		ended <- err
	}()
	fake.Wait(t, fakeengine.At("two"))
	kill(t, lease.Instance.PID)
	if err := <-ended; err == nil {
		t.Error("an answer that broke off ended well")
	}
	if got, want := lease.Lost(t.Context(), nil), (process.Loss{Kind: process.Killed, Alone: true}); got != want {
		t.Errorf("the loss is %+v, want %+v", got, want)
	}
	fake.Set(func(script *fakeengine.Script) { script.Rules = nil })
	next := works(t, s) // before the first is released
	if next.Instance.PID == lease.Instance.PID {
		t.Error("the dead process was lent again")
	}
	lease.Release()
	if all := s.Instances(); len(all) != 1 || all[0].InUse != 0 {
		t.Errorf("a lease of the dead process has freed a slot of the next: %+v", all)
	}
}

// What an engine said before it crashed is read, also if its end is known before.
func TestFault_WhatWasSentBeforeACrashIsRead(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		Answer: fakeengine.Answer{Text: "one two three"}, Cues: []fakeengine.Cue{{After: 2, Gate: "two", Do: fakeengine.Crash}},
	}}})
	lease := acquire(t, s, want("m", 1))
	resp, err := lease.Post(t.Context(), "/v1/chat/completions", []byte(`{"messages":[{"role":"user","content":"hi"}],"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	fake.Wait(t, fakeengine.At("two"))
	fake.Release("two")
	testkit.Eventually(t, "the crash is known", func() bool { return len(s.Instances()) == 0 })
	if said, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(string(said), `"content":" two"`) {
		t.Errorf("%s, %v", said, err)
	}
	if got, want := lease.Lost(t.Context(), io.ErrUnexpectedEOF), (process.Loss{Kind: process.Ended, Alone: true}); got != want {
		t.Errorf("the loss is %+v, want %+v", got, want)
	}
	lease.Release()
}

func TestFault_CrashWhileLoading(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		death  fakeengine.Death
		starts int
		want   string
	}{
		"with a status":    {fakeengine.Death{Code: 3, Lines: []string{"something is wrong"}}, 1, "something is wrong"},
		"without a word":   {fakeengine.Death{}, 2, "It ran out of memory, also after room was made"}, // as the system kills who takes too much
		"with an abortion": {fakeengine.Death{Signal: 6, Lines: []string{"GGML_ASSERT(n > 0) failed"}}, 1, "GGML_ASSERT(n > 0) failed"},
		"for want of memory": {
			fakeengine.Death{Code: 1, Lines: []string{"0.00.001.000 E ggml_aligned_malloc: insufficient memory (attempted to allocate 768.00 MB)"}},
			2, "insufficient memory (attempted to allocate 768.00 MB)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, fake := start(t, &fakeengine.Script{Load: fakeengine.Load{Fail: &c.death}})
			if got := refusal(t, s).Message; !strings.Contains(got, c.want) {
				t.Errorf("message %q lacks %q", got, c.want)
			}
			if n := len(starts(fake)); n != c.starts {
				t.Errorf("%d starts, want %d", n, c.starts)
			}
			fake.Set(func(script *fakeengine.Script) { script.Load.Fail = nil })
			works(t, s)
		})
	}
}

// stallAfterFirstWords gives an engine all the time that it needs for its first words.
func stallAfterFirstWords(d time.Duration) func() time.Duration {
	var asked atomic.Bool
	return func() time.Duration {
		if asked.Swap(true) {
			return d
		}
		return time.Hour
	}
}

func TestFault_ALoadThatStallsEndsWithTheEnginesLastWords(t *testing.T) {
	t.Parallel()
	var isOver atomic.Bool
	soon := stallAfterFirstWords(2 * time.Second)
	options := Options{Options: process.Options{Stall: func() time.Duration {
		if isOver.Load() {
			return time.Hour
		}
		return soon()
	}}}
	s, fake := startWith(t, &fakeengine.Script{Load: fakeengine.Load{Hang: true}, Noise: []fakeengine.Noise{{Text: "reading the wrong disk\n"}}}, options, nil)
	got := refusal(t, s).Message
	for _, part := range []string{"The model m could not be loaded: the engine wrote nothing for 2s while it was loading", "its last words: ", "loading model '/models/m.gguf'"} {
		if !strings.Contains(got, part) {
			t.Errorf("message %q lacks %q", got, part)
		}
	}
	if strings.Contains(got, "told to stop") {
		t.Errorf("message %q says what is no concern of the caller's", got)
	}
	if n := len(starts(fake)); n != 1 {
		t.Errorf("%d starts, want 1: it was us who killed it", n)
	}
	isOver.Store(true)
	fake.Set(func(script *fakeengine.Script) { script.Load.Hang = false })
	works(t, s)
}

func TestFault_ALoadThatOnlyTalksEndsToo(t *testing.T) {
	t.Parallel()
	options := Options{Options: process.Options{Stall: stallAfterFirstWords(300 * time.Millisecond)}}
	s, _ := startWith(t, &fakeengine.Script{Load: fakeengine.Load{Hang: true}, Noise: []fakeengine.Noise{{Text: "trying again\n", Every: time.Millisecond}}}, options, nil)
	// Beside other work it may be silent for so long. What is said of one that isn't: see TestLoading.
	if got := refusal(t, s).Message; !strings.Contains(got, "while it was loading") || !strings.Contains(got, "its last words: trying again") {
		t.Errorf("message %q", got)
	}
}

// stateLine begins the lines by which the fake engine tells its state.
const stateLine = "cmd_child_to_router:state:"

func TestFault_GarbageHurtsNobody(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Noise: []fakeengine.Noise{
		{Stdout: true, Text: stateLine + "{\"state\":\n" + stateLine + "[]\n" + stateLine + `{"state":"loading","payload":{"value":"x"}}` + "\n\x00\xff\xfe\r\n\n\n"},
		{Text: "\xff\xfe buffer size = 99999999999999999999999 MiB\n\x1b[31m"},
		{When: fakeengine.AtRequest, Text: stateLine + "{}\n", Stdout: true},
		{When: fakeengine.AtReady, Text: "no line at all", Every: time.Millisecond},
	}})
	works(t, s)
	works(t, s)
	if n := len(starts(fake)); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}

func TestFault_AnErrorAnswerIsTheCallersMatter(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Times: 2, Status: http.StatusInternalServerError}}})
	for range 2 {
		lease := acquire(t, s, want("m", 1))
		if _, err := chat(t.Context(), lease); err == nil || !strings.Contains(err.Error(), "500") {
			t.Errorf("error %v, want the status", err)
		}
		lease.Release()
	}
	works(t, s)
	if n := len(starts(fake)); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}

// portTaker has another program listen where the engine's first launch is to.
type portTaker struct {
	process.Program
	port  int
	taken bool
}

func (p *portTaker) Command(l process.Launch, b process.Build) process.Cmd {
	if !p.taken {
		p.taken, l.Port = true, p.port
	}
	return p.Program.Command(l, b)
}

func TestFault_AnotherListensOnItsPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stranger := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })}
	go func() { _ = stranger.Serve(l) }()
	t.Cleanup(func() { _ = stranger.Close() })
	s, fake := startWith(t, &fakeengine.Script{NoSockets: true}, Options{}, func(p process.Program) process.Program {
		return &portTaker{Program: p, port: l.Addr().(*net.TCPAddr).Port}
	})
	works(t, s)
	if n := len(starts(fake)); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
}

func TestFault_AHangingEngineIsReplaced(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 1, Gate: "never"}}}}})
	hung := acquire(t, s, want("m", 1))
	ended := make(chan error, 1)
	go func() {
		_, err := chat(t.Context(), hung)
		ended <- err
	}()
	fake.Wait(t, fakeengine.At("never"))
	fake.Set(func(script *fakeengine.Script) { script.Rules = nil })
	s.Handle(schedule.Condemned{Gen: hung.Instance.Gen, Reason: "it hangs"})
	if err := <-ended; err == nil {
		t.Error("the request on the engine that hung ended well")
	}
	if next := works(t, s); next.Instance.PID == hung.Instance.PID {
		t.Error("the engine that hung was lent again")
	}
	if c := s.Counts()["m"]; c.Crashes != 1 || c.Stops[schedule.ForSilence] != 1 {
		t.Errorf("counts %+v", c)
	}
}

// A client that disconnects leaves a free slot, at any moment.
func TestFault_GoingAwayAtAnyMoment(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]*fakeengine.Script{
		"while it loads":        {Load: fakeengine.Load{Gate: "there"}},
		"in prompt processing":  {Rules: []fakeengine.Rule{{Times: 1, Gate: "there", PromptTokens: 400}}},
		"before the first byte": {Rules: []fakeengine.Rule{{Times: 1, Cues: []fakeengine.Cue{{Gate: "there", Do: fakeengine.Hang}}}}},
		"amid a stream":         {Rules: []fakeengine.Rule{{Times: 1, Cues: []fakeengine.Cue{{After: 2, Gate: "there", Do: fakeengine.Hang}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, fake := start(t, script)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 2)
			go func() {
				lease, err := s.Acquire(ctx, want("m", 1), nil)
				if err == nil {
					_, err = chat(ctx, lease)
					lease.Release()
				}
				ended <- err
			}()
			fake.Wait(t, fakeengine.At("there"))
			waiting, leave := context.WithCancel(t.Context())
			go func() {
				_, err := s.Acquire(waiting, want("m", 1), nil)
				ended <- err
			}()
			testkit.Eventually(t, "another waits", func() bool { return s.Overview().Waiting["m"] > 0 })
			for _, end := range []func(){leave, cancel} { // one after the other: else the second may be given what the first returns
				end()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("error %v, want the context's", err)
				}
			}
			fake.Release("there")
			works(t, s)
			if o := s.Overview(); len(o.Instances) != 1 || o.Instances[0].InUse != 0 || o.Waiting["m"] != 0 {
				t.Errorf("overview %+v", o)
			}
		})
	}
}

// goneAtOnce is the context of a client that disconnects between the request and the answer.
type goneAtOnce struct {
	context.Context
	asked bool
}

func (c *goneAtOnce) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (c *goneAtOnce) Err() error {
	if !c.asked {
		c.asked = true
		return nil
	}
	return context.Canceled
}

func TestFault_GivingUpAsItIsGranted(t *testing.T) {
	t.Parallel()
	s, _ := start(t, nil)
	works(t, s)
	for range 20 { // whether the answer or the end of the context is seen first is left to chance
		if lease, err := s.Acquire(&goneAtOnce{Context: t.Context()}, want("m", 1), nil); err == nil {
			lease.Release()
		}
		if all := s.Instances(); len(all) != 1 || all[0].InUse != 0 {
			t.Fatalf("instances %+v", all)
		}
	}
}
