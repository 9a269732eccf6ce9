package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

// says is a chat whose user says something.
func (s *server) says(text, more string) answer {
	s.t.Helper()
	return s.do("POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"`+text+`"}]`+more+`}`)
}

// TestGuard_ARequestThatEndsEngines: it is refused after two crashes, and nobody else has to pay for it. One that only hangs isn't refused, nor is one on
// which another program kills them.
func TestGuard_ARequestThatEndsEngines(t *testing.T) {
	t.Parallel()
	killed := &fakeengine.Death{Signal: 9}
	for name, tt := range map[string]struct {
		do    fakeengine.Action
		more  string
		code  string            // of the first attempts; they end two engines together
		death *fakeengine.Death // nil: it crashes
	}{
		"crashes":               {fakeengine.Crash, "", "request_crashes_engine", nil},
		"crashes, in choices":   {fakeengine.Crash, `,"n":2`, "request_crashes_engine", nil},
		"hangs":                 {fakeengine.Stick, "", "engine_stalled", nil},
		"is killed":             {fakeengine.Crash, "", "engine_failed", killed},
		"crashes, and streams":  {fakeengine.Crash, `,"stream":true`, "engine_failed", nil},
		"hangs, and streams":    {fakeengine.Stick, `,"stream":true`, "engine_stalled", nil},
		"crashes before, again": {fakeengine.Crash, `,"stream":true,"n":2`, "engine_failed", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
				{Contains: "poison", Cues: []fakeengine.Cue{{After: 2, Do: tt.do, Death: tt.death}}},
			}}, twoSlots).stallSoon()
			isGuilty := tt.do == fakeengine.Crash && tt.death == nil
			for range 2 {
				got := s.says("poison", tt.more)
				if !strings.Contains(got.body, tt.code) && (!isGuilty || !strings.Contains(got.body, "request_crashes_engine")) {
					t.Errorf("%d %s", got.status, got.body)
				}
			}
			asked := s.requests()
			if isGuilty {
				if got := s.says("poison", tt.more); got.status != 400 || got.code() != "request_crashes_engine" || !isWholeError(got.body) {
					t.Errorf("afterwards: %d %s", got.status, got.body)
				}
				if n := s.requests(); n != asked {
					t.Errorf("an engine was asked again: %d times", n-asked)
				}
			}
			if got := s.says("harmless", ""); got.status != 200 {
				t.Errorf("another: %d %s", got.status, got.body)
			}
			if o := s.node.Overview(); len(o.Failing) > 0 {
				t.Errorf("the model is left alone: %+v", o.Failing)
			}
		})
	}
}

// TestGuard_WhoIsBesideIt is answered, whatever ends the engine, and isn't suspected afterwards.
func TestGuard_WhoIsBesideIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   fakeengine.Action
		code string
	}{"a crash": {fakeengine.Crash, "request_crashes_engine"}, "a hang": {fakeengine.Stick, "engine_stalled"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
				{Contains: "poison", Cues: []fakeengine.Cue{{After: 1, Gate: "both", Do: tt.do}}},
				{Contains: "harmless", Nth: 1, Gate: "never"}, // in the first engine
				{Contains: "harmless", Nth: 2, Gate: "never"},
			}}, twoSlots).stallSoon()
			s.fake.Set(func(script *fakeengine.Script) {
				script.Cases = []fakeengine.Case{{Start: 1, Script: fakeengine.Script{Rules: script.Rules}}}
				script.Rules = script.Rules[:1]
			})
			var both sync.WaitGroup
			var poison, harmless answer
			both.Go(func() { poison = s.says("poison", "") })
			both.Go(func() { harmless = s.says("harmless", "") })
			s.fake.Wait(t, fakeengine.At("both"))
			s.fake.Wait(t, fakeengine.At("never"))
			s.fake.Release("both")
			both.Wait()
			if harmless.status != 200 {
				t.Errorf("harmless: %d %s", harmless.status, harmless.body)
			}
			if poison.code() != tt.code {
				t.Errorf("poison: %d %s", poison.status, poison.body)
			}
			if n := len(s.starts()); n > 3 {
				t.Errorf("%d engines were started, want 3 at most", n)
			}
			if got := s.says("harmless", ""); got.status != 200 {
				t.Errorf("harmless again: %d %s", got.status, got.body)
			}
		})
	}
}

func (s *server) starts() (all []fakeengine.Event) {
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Started {
			all = append(all, ev)
		}
	}
	return all
}

// TestGuard_EveryUpstreamCallIsWatched: none of them waits for ever.
func TestGuard_EveryUpstreamCallIsWatched(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ upstream, path, body string }{
		"detokenize":   {"/detokenize", "/v1/completions", `{"model":"tinychat","prompt":[1,2,3],"echo":true}`},
		"texts":        {"/detokenize", "/detokenize", `{"model":"tinychat","tokens":[1,2,3]}`},
		"tokens":       {"/tokenize", "/tokenize", `{"model":"tinychat","content":"a"}`},
		"prompts":      {"/apply-template", "/apply-template", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`},
		"completions":  {"/completion", "/v1/completions", `{"model":"tinychat","prompt":"a"}`},
		"embeddings":   {"/v1/embeddings", "/v1/embeddings", `{"model":"tinyembed","input":"a"}`},
		"rerank":       {"/v1/rerank", "/v1/rerank", `{"model":"tinyrerank","query":"a","documents":["b"]}`},
		"count tokens": {"/v1/chat/completions/input_tokens", "/v1/messages/count_tokens", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, firstProcess(fakeengine.Rule{Path: tt.upstream, Gate: "hang"})).stallSoon()
			withOthers(s)
			if got := s.do("POST", tt.path, tt.body); got.status != 504 {
				t.Errorf("%d %s", got.status, got.body)
			}
			if got := s.do("POST", tt.path, tt.body); got.status != 200 {
				t.Errorf("the next one: %d %s", got.status, got.body)
			}
		})
	}
}

func TestGuard_ShuttingDownIsSaid(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 1, Gate: "never"}}}}})
	got := make(chan answer)
	for _, more := range []string{"", `,"stream":true`} {
		go func() { got <- s.says("hi", more) }()
	}
	s.fake.Wait(t, func(ev fakeengine.Event) bool { return ev.Kind == fakeengine.Gated && ev.N == 2 })
	if err := s.node.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if a := <-got; !strings.Contains(a.body, `"shutting_down"`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

func TestGather_IsBounded(t *testing.T) {
	t.Parallel()
	long := &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Chunks: 200}}}}
	bounded := func(c *endpoint.Config, _ *node.Settings) { c.MaxGathered = 2000 }
	const ask = `"model":"tinychat","messages":[{"role":"user","content":"hi"}]`
	for name, tt := range map[string]struct {
		path, body string
		status     int
	}{
		"a chat":                {"/v1/chat/completions", `{` + ask + `}`, 200},
		"choices":               {"/v1/chat/completions", `{` + ask + `,"n":4}`, 400},
		"choices, streamed":     {"/v1/chat/completions", `{` + ask + `,"n":4,"stream":true}`, 200},
		"completions":           {"/v1/completions", `{"model":"tinychat","prompt":"a","n":4}`, 400},
		"completions, streamed": {"/v1/completions", `{"model":"tinychat","prompt":"a","n":4,"stream":true}`, 200},
		"embeddings":            {"/v1/embeddings", `{"model":"tinyembed","input":["a"` + strings.Repeat(`,"a"`, 99) + `]}`, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, long, bounded)
			withOthers(s)
			got := s.do("POST", tt.path, tt.body)
			if got.status != tt.status || (tt.status == 400 && got.code() != "answer_too_large") {
				t.Errorf("%d %.200s", got.status, got.body)
			}
		})
	}
}

// What servers' tools return counts as well: each may return megabytes, in every round.
func TestGather_CountsResults(t *testing.T) {
	t.Parallel()
	said := strings.Repeat("word ", 300)
	bounded := func(c *endpoint.Config, settings *node.Settings) {
		withRemoteMCP(c, settings)
		c.MaxGathered = 2500
	}
	s := serve(t, callsThen("It said hi.", fakeengine.ToolCall{Name: "echo", Arguments: `{"message":"` + said + `"}`}), bounded)
	tools := serveTools(t)
	for name, got := range map[string]answer{
		"a response":           s.respond(`"Use echo."`, tools.remoteTools("")),
		"a response, streamed": s.respond(`"Use echo."`, tools.remoteTools(`,"require_approval":"never"`)+`,"stream":true`),
		"a native chat":        s.native("Use echo.", tools.ephemeral("")),
	} {
		if !strings.Contains(got.body, "The answer is larger") || strings.Contains(got.body, "It said hi.") {
			t.Errorf("%s: %d %.300s", name, got.status, got.body)
		}
	}
}

// TestParts_AreJoined: a client can't tell that its inputs went to the engine in parts.
func TestParts_AreJoined(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	withOthers(s)
	var inputs []string
	for i := range 70 {
		inputs = append(inputs, `"`+strings.Repeat("word ", i/8)+`end`+strconv.Itoa(i)+`"`)
	}
	all := s.do("POST", "/v1/embeddings", `{"model":"tinyembed","input":[`+strings.Join(inputs, ",")+`]}`)
	if n := s.requests(); n != 3 {
		t.Errorf("the engine was asked %d times, want 3", n)
	}
	for _, i := range []int{0, 31, 32, 69} {
		one := s.do("POST", "/v1/embeddings", `{"model":"tinyembed","input":`+inputs[i]+`}`)
		at := gjson.Get(all.body, "data").Array()[i]
		if want := gjson.Get(one.body, "data.0.embedding").Raw; at.Get("embedding").Raw != want || at.Get("index").Int() != int64(i) {
			t.Errorf("input %d: %s, want %s", i, at.Raw, want)
		}
	}
	if n := gjson.Get(all.body, "usage.prompt_tokens").Int(); n != 8*(0+1+2+3+4+5+6+7)+6*8+70 {
		t.Errorf("%d tokens", n)
	}
	ranks := s.do("POST", "/v1/rerank", `{"model":"tinyrerank","query":"word","documents":[`+strings.Join(inputs, ",")+`],"top_n":2}`)
	if best := gjson.Get(ranks.body, "results.#.index").Raw; best != "[64,65]" {
		t.Errorf("%s", ranks.body)
	}
}

// TestParts_EndWithTheirClient: what it no longer waits for isn't asked.
func TestParts_EndWithTheirClient(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Nth: 2, Gate: "second"}}})
	withOthers(s)
	ctx, leave := context.WithCancel(t.Context())
	body := `{"model":"tinyembed","input":["a"` + strings.Repeat(`,"a"`, 99) + `]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/embeddings", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		resp, err := s.Client().Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	s.fake.Wait(t, fakeengine.At("second"))
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	s.fake.Wait(t, fakeengine.Is(fakeengine.Cancelled))
	if got := s.do("POST", "/v1/embeddings", `{"model":"tinyembed","input":"a"}`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := s.requests(); n != 3 {
		t.Errorf("the engine was asked %d times, want 3", n)
	}
}
