package api

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

func (s *server) complete(more string) answer {
	s.t.Helper()
	return s.do("POST", "/v1/completions", `{"model":"lmcaddy/tinychat"`+more+`}`)
}

// TestEngines_AreLoadedForNoBadRequest: what is wrong with a request is told before anything is loaded for it.
func TestEngines_AreLoadedForNoBadRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	withOthers(s)
	for name, tt := range map[string]struct{ path, body, code, param string }{
		"completions: embedding model":   {"/v1/completions", `{"model":"tinyembed","prompt":"a"}`, "unsupported_model", "model"},
		"completions: no prompt":         {"/v1/completions", `{"model":"tinychat"}`, "missing_required_parameter", "prompt"},
		"completions: no model":          {"/v1/completions", `{"prompt":"a"}`, "missing_required_parameter", "model"},
		"completions: mixed prompts":     {"/v1/completions", `{"model":"tinychat","prompt":["a",1]}`, "invalid_type", "prompt"},
		"completions: best_of, streamed": {"/v1/completions", `{"model":"tinychat","prompt":"a","best_of":2,"stream":true}`, "invalid_value", "best_of"},
		"completions: ttl":               {"/v1/completions", `{"model":"tinychat","prompt":"a","ttl":"1"}`, "invalid_type", "ttl"},
		"v0 completions: no prompt":      {"/api/v0/completions", `{"model":"tinychat"}`, "missing_required_parameter", "prompt"},
		"embeddings: chat model":         {"/v1/embeddings", `{"model":"tinychat","input":"a"}`, "unsupported_model", "model"},
		"embeddings: reranker":           {"/v1/embeddings", `{"model":"tinyrerank","input":"a"}`, "unsupported_model", "model"},
		"embeddings: no input":           {"/v1/embeddings", `{"model":"tinyembed"}`, "missing_required_parameter", "input"},
		"embeddings: empty input":        {"/v1/embeddings", `{"model":"tinyembed","input":["a",""]}`, "invalid_value", "input"},
		"embeddings: format":             {"/v1/embeddings", `{"model":"tinyembed","input":"a","encoding_format":"x"}`, "invalid_value", "encoding_format"},
		"v0 embeddings: chat model":      {"/api/v0/embeddings", `{"model":"tinychat","input":"a"}`, "unsupported_model", "model"},
		"rerank: embedding model":        {"/v1/rerank", `{"model":"tinyembed","query":"a","documents":["b"]}`, "unsupported_model", "model"},
		"rerank: chat model":             {"/v1/rerank", `{"model":"tinychat","query":"a","documents":["b"]}`, "unsupported_model", "model"},
		"rerank: no query":               {"/v1/rerank", `{"model":"tinyrerank","documents":["b"]}`, "missing_required_parameter", "query"},
		"rerank: no documents":           {"/v1/rerank", `{"model":"tinyrerank","query":"a","documents":[]}`, "invalid_value", "documents"},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.do("POST", tt.path, tt.body)
			if got.status != 400 || got.code() != tt.code || gjson.Get(got.body, "error.param").Str != tt.param {
				t.Errorf("%d %s, want 400 with %s about %s", got.status, got.body, tt.code, tt.param)
			}
		})
	}
	if slices.ContainsFunc(s.fake.Events(), fakeengine.Is(fakeengine.Started)) {
		t.Error("a bad request has loaded a model")
	}
}

func TestEmbeddings_MoreDimensionsThanThereAre(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	withOthers(s)
	got := s.do("POST", "/v1/embeddings", `{"model":"tinyembed","input":"a","dimensions":9}`)
	if got.status != 400 || gjson.Get(got.body, "error.param").Str != "dimensions" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestCompletions_AModelThatCantFillGaps(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, more := range []string{"", `,"stream":true`} {
		got := s.complete(`,"prompt":"a","suffix":"b"` + more)
		if got.status != 400 || got.code() != "unsupported_value" || gjson.Get(got.body, "error.param").Str != "suffix" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// TestCompletions_ChoicesOfAStream: each has its own text and one end, and the figures come once.
func TestCompletions_ChoicesOfAStream(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: `"first"`, Answer: fakeengine.Answer{Text: "One two."}, PromptTokens: 3},
		{Contains: `"second"`, Answer: fakeengine.Answer{Text: "Three four five."}, PromptTokens: 5},
	}})
	got := s.complete(`,"prompt":["first","second"],"n":3,"stream":true,"stream_options":{"include_usage":true}`)
	all := chunks(t, got.body)
	texts, ends, ids, usage := make([]string, 6), make([]int, 6), map[string]bool{}, 0
	for _, data := range all[:len(all)-1] {
		chunk := gjson.Parse(data)
		ids[chunk.Get("id").Str] = true
		if chunk.Get("usage").Exists() {
			usage++
			if u := chunk.Get("usage"); u.Get("prompt_tokens").Int() != 8 || u.Get("completion_tokens").Int() != 3*2+3*3 || chunk.Get("choices.#").Int() != 0 {
				t.Errorf("usage %s", data)
			}
			continue
		}
		choice := chunk.Get("choices.0")
		i := choice.Get("index").Int()
		texts[i] += choice.Get("text").Str
		if choice.Get("finish_reason").Str == "stop" {
			ends[i]++
		}
	}
	want := []string{"One two.", "One two.", "One two.", "Three four five.", "Three four five.", "Three four five."}
	if !slices.Equal(texts, want) || !slices.Equal(ends, []int{1, 1, 1, 1, 1, 1}) || len(ids) != 1 || usage != 1 || all[len(all)-1] != "[DONE]" {
		t.Errorf("texts %q, ends %v, %d ids, %d usages, last %s", texts, ends, len(ids), usage, all[len(all)-1])
	}
}

func TestCompletions_BestOfTakesTheLikeliest(t *testing.T) {
	t.Parallel()
	// Later tokens of the fake engine are less likely, so that shorter answers are likelier.
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: `"seed":7,`, Answer: fakeengine.Answer{Text: "It is so long."}},
		{Contains: `"seed":8,`, Answer: fakeengine.Answer{Text: "Short."}},
		{Contains: `"seed":9,`, Answer: fakeengine.Answer{Text: "Not short."}},
	}})
	got := s.complete(`,"prompt":"a","seed":7,"best_of":3,"n":2`)
	if texts := gjson.Get(got.body, "choices.#.text").Raw; texts != `["Short.","Not short."]` {
		t.Errorf("%d %s", got.status, got.body)
	}
	if gjson.Get(got.body, "choices.#.index").Raw != `[0,1]` || gjson.Get(got.body, "choices.0.logprobs").Raw != "null" {
		t.Errorf("%s", got.body)
	}
	if n := gjson.Get(got.body, "usage.completion_tokens").Int(); n != 4+1+2 {
		t.Errorf("the usage has %d tokens, want those of all candidates", n)
	}
}

func TestCompletions_AsManyAtATimeAsAreAllowed(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Gate: "go"}}}, func(_ *endpoint.Config, settings *node.Settings) { inParallel(settings, 16) })
	done := make(chan answer)
	go func() { done <- s.complete(`,"prompt":"a","n":9`) }()
	for i := range text.ChoicesAtOnce {
		n := 0
		s.fake.Wait(t, func(e fakeengine.Event) bool {
			if e.Kind == fakeengine.Gated {
				n++
			}
			return n > i
		})
	}
	requests := 0
	for _, e := range s.fake.Events() {
		if e.Kind == fakeengine.Request && e.Path == "/completion" {
			requests++
		}
	}
	if requests != text.ChoicesAtOnce {
		t.Errorf("the engine was asked %d at a time, want %d", requests, text.ChoicesAtOnce)
	}
	s.fake.Release("go")
	if got := <-done; gjson.Get(got.body, "choices.#").Int() != 9 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestCompletions_AFaultAmidAStreamIsAnEvent(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Fault}}}}})
	for path, want := range map[string]string{
		"/v1/completions":     `{"error":{"message":"The context is full.`,
		"/api/v0/completions": `{"error":{"type":"invalid_request","message":"The context is full.`,
	} {
		for _, n := range []string{"1", "3"} {
			got := s.do("POST", path, `{"model":"tinychat","prompt":"a","stream":true,"n":`+n+`}`)
			all := chunks(t, got.body)
			if got.status != 200 || !strings.HasPrefix(all[len(all)-1], want) || strings.Count(got.body, `{"error":`) != 1 {
				t.Errorf("%s, n %s: %d %s", path, n, got.status, got.body)
			}
			got = s.do("POST", path, `{"model":"tinychat","prompt":"a","n":`+n+`}`)
			if got.status != 400 || !strings.HasPrefix(got.body, want) {
				t.Errorf("%s, n %s, in one piece: %d %s", path, n, got.status, got.body)
			}
		}
	}
}

// TestCompletions_ADeadEngineIsReplaced: as long as the client has seen nothing of a choice.
func TestCompletions_ADeadEngineIsReplaced(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"body": "", "stream": `,"stream":true`, "choices": `,"n":2`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Cases: []fakeengine.Case{{Start: 1, Script: fakeengine.Script{Rules: []fakeengine.Rule{{
				FirstDelay: 1, Cues: []fakeengine.Cue{{Do: fakeengine.Crash}},
			}}}}}})
			got := s.complete(`,"prompt":"a"` + more)
			if got.status != 200 || !strings.Contains(got.body, "engine.") {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

func TestCompletions_AClientThatGoesEndsAllChoices(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Hang}}}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := strings.NewReader(`{"model":"tinychat","prompt":"a","n":3,"stream":true}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for n := 0; n < 6 && lines.Scan(); { // two pieces of each
		if strings.HasPrefix(lines.Text(), "data: ") {
			n++
		}
	}
	cancel()
	gone := 0
	s.fake.Wait(t, func(e fakeengine.Event) bool {
		if e.Kind == fakeengine.Cancelled {
			gone++
		}
		return gone == 3
	})
}

func TestV0_StopReasons(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Answer: fakeengine.Answer{Text: "One two three."}},
	}})
	for more, want := range map[string]string{
		`"prompt":"a"`:                  "eosFound",
		`"prompt":"a","stop":"three"`:   "stopStringFound",
		`"prompt":"a","max_tokens":2`:   "maxPredictedTokensReached",
		`"prompt":"a","max_tokens":-1`:  "eosFound",
		`"prompt":"a","stop":["x","y"]`: "eosFound",
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			got := s.do("POST", "/api/v0/completions", `{"model":"tinychat",`+more+stream+`}`)
			if !strings.Contains(got.body, `"stop_reason":"`+want+`"`) {
				t.Errorf("%s%s: %s", more, stream, got.body)
			}
		}
	}
}

func TestV0_AModelThatLoads(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}})
	state := func() string {
		return gjson.Get(s.do("GET", "/api/v0/models/tinychat", "").body, "state").Str
	}
	if got := state(); got != "not-loaded" {
		t.Errorf("before: %s", got)
	}
	done := make(chan answer)
	go func() { done <- s.complete(`,"prompt":"a"`) }()
	s.fake.Wait(t, fakeengine.At("load"))
	if got := state(); got != "loading" {
		t.Errorf("amid: %s", got)
	}
	s.fake.Release("load")
	<-done
	if got := state(); got != "loaded" {
		t.Errorf("after: %s", got)
	}
	if got := s.do("GET", "/api/v0/models/nope", ""); got.status != 404 || got.code() != "model_not_found" {
		t.Errorf("unknown: %d %s", got.status, got.body)
	}
}
