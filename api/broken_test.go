package api

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// firstProcess is a script for the engine's first process; the later ones are healthy.
func firstProcess(rules ...fakeengine.Rule) *fakeengine.Script {
	return &fakeengine.Script{Cases: []fakeengine.Case{{Start: 1, Script: fakeengine.Script{Rules: rules}}}}
}

// noSecond is firstProcess, and the next process takes no beginning of an answer.
func noSecond(rules ...fakeengine.Rule) *fakeengine.Script {
	script := firstProcess(rules...)
	script.Rules = []fakeengine.Rule{refusal}
	return script
}

// refusal refuses the first request with the beginning of an answer.
var refusal = fakeengine.Rule{Contains: `"role":"assistant"`, Times: 1, Status: 400}

const healthy = "Hello from the fake engine."

func TestBroken_WhatTheClientHasNotSeenIsAskedAgain(t *testing.T) {
	t.Parallel()
	before := fakeengine.Rule{Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}
	amid := fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}
	for name, tt := range map[string]struct {
		rule fakeengine.Rule
		more string
	}{
		"a body, before the answer": {before, ""},
		"a body, amid the answer":   {amid, ""},
		"a stream, before":          {before, `,"stream":true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, firstProcess(tt.rule))
			got := s.chat(tt.more)
			text := gjson.Get(got.body, "choices.0.message.content").Str
			if tt.more != "" {
				texts, _ := choicesOf(t, got.body)
				text = texts[0]
			}
			if got.status != 200 || text != healthy {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

func TestBroken_WhatTheClientHasSeenEndsInAnError(t *testing.T) {
	t.Parallel()
	s := serve(t, noSecond(fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Gate: "seen", Do: fakeengine.Crash}}}))
	_, begun, rest := s.open("/v1/chat/completions", `{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"hi"}]}`, `"content":"Hello"`, 1)
	s.fake.Release("seen")
	left, err := io.ReadAll(rest)
	if err != nil {
		t.Fatal(err)
	}
	all := chunks(t, begun+string(left))
	if last := (answer{body: all[len(all)-1]}); last.code() != "engine_failed" || !isWholeError(last.body) {
		t.Errorf("%s", all)
	}
	if n := s.requests(); n != 2 {
		t.Errorf("the engines were asked %d times", n)
	}
}

// requests is how often the engines were asked.
func (s *server) requests() (n int) {
	for _, ev := range s.fake.Events() {
		if isAsked(ev) {
			n++
		}
	}
	return n
}

// isAsked leaves out what the supervisor asks of an engine that has been silent for a while, as any is on a busy machine.
func isAsked(ev fakeengine.Event) bool {
	return ev.Kind == fakeengine.Request && ev.Method == http.MethodPost
}

// stallSoon has engines that hang given up soon. As long as none does the limit is longer: beside other work it takes an engine
// seconds to start or to answer.
func (s *server) stallSoon() *server {
	s.t.Helper()
	const soon, unhurried = time.Second, 12 * time.Second // a quarter of the longer one passes before a silence is looked into
	gen := uint64(1)
	limit := func(most time.Duration) {
		gen++
		settings := s.node.Settings()
		settings.StallTimeout = most
		if err := s.node.Push(gen, settings); err != nil {
			s.t.Error(err)
		}
	}
	limit(unhurried)
	ctx, cancel := context.WithCancel(s.t.Context())
	var watch sync.WaitGroup
	s.t.Cleanup(func() {
		cancel()
		watch.Wait()
	})
	watch.Go(func() {
		for before := false; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			now := s.hangs()
			if now && !before {
				limit(soon)
			} else if before && !now {
				limit(unhurried)
			}
			before = now
		}
	})
	return s
}

// hangs tells whether an engine hangs that is in use.
func (s *server) hangs() bool {
	hung := map[int]bool{}
	for _, ev := range s.fake.Events() {
		hung[ev.PID] = hung[ev.PID] || ev.Kind == fakeengine.Hung || ev.Kind == fakeengine.Stuck || fakeengine.At("hang")(ev)
	}
	return slices.ContainsFunc(s.node.Overview().Instances, func(in supervisor.Info) bool {
		return hung[in.PID] && in.Status == schedule.Ready
	})
}

func TestStall_IsAnErrorAtLast(t *testing.T) {
	t.Parallel()
	hang := func(after int) *fakeengine.Script {
		return firstProcess(fakeengine.Rule{Cues: []fakeengine.Cue{{After: after, Do: fakeengine.Hang}}})
	}
	for name, tt := range map[string]struct {
		after int
		more  string
	}{
		"a body, before":   {0, ""},
		"a body, amid":     {2, ""},
		"a stream, before": {0, `,"stream":true`},
		"a stream, amid":   {2, `,"stream":true`},
		"choices":          {2, `,"n":2`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, hang(tt.after)).stallSoon()
			got := s.chat(tt.more)
			if got.status == 200 {
				all := chunks(t, got.body)
				got.status, got.body = 504, all[len(all)-1]
			}
			if got.status != 504 || got.code() != "engine_stalled" || !isWholeError(got.body) {
				t.Errorf("%d %s", got.status, got.body)
			}
			s.fake.Wait(t, fakeengine.Is(fakeengine.Cancelled))
			if got := s.chat(""); got.status != 200 {
				t.Errorf("the next request: %d %s", got.status, got.body)
			}
		})
	}
}

// TestStream_TheHeaderDoesNotWaitForALongPrompt: it comes while the engine is still at the prompt, and what goes wrong
// after it is told by an event; an engine that ends is still replaced.
func TestStream_TheHeaderDoesNotWaitForALongPrompt(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]*fakeengine.Script{
		"healthy": {Rules: []fakeengine.Rule{{Gate: "prompt"}}},
		"crash":   firstProcess(fakeengine.Rule{Gate: "prompt", Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, script, func(c *endpoint.Config, _ *node.Settings) { c.HeaderAfter = time.Millisecond })
			resp, err := http.Post(s.URL+"/v1/chat/completions", "application/json",
				strings.NewReader(`{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			s.fake.Release("prompt") // the header was here before
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if texts, _ := choicesOf(t, string(body)); resp.StatusCode != http.StatusOK || texts[0] != healthy {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
}

// TestBroken_NonsenseEndsAnAnswerAtOnce: the rest, which may take the engine long, isn't waited for.
func TestBroken_NonsenseEndsAnAnswerAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Text: "one two three"}, Cues: []fakeengine.Cue{
		{After: 1, Do: fakeengine.Garbage, Bytes: []byte("data: [1]\n\n")}, {After: 2, Gate: "never"},
	}}}}, func(_ *endpoint.Config, s *node.Settings) { inParallel(s, 4) })
	for name, tt := range dialectAsks {
		for _, stream := range []string{"false", "true"} {
			t.Run(name+" "+stream, func(t *testing.T) {
				answered := make(chan answer, 1)
				go func() { answered <- s.do("POST", tt.path, `{"model":"tinychat","stream":`+stream+`,`+tt.body+`}`) }()
				if got := s.wait(answered); !strings.Contains(got.body, "engine_failed") && !strings.Contains(got.body, "api_error") && !strings.Contains(got.body, `{"error":"The engine's answer can't be read`) {
					t.Errorf("%d %s", got.status, got.body)
				}
			})
		}
	}
}
