package fakeengine_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

// deltas says of each event what it is, in a few words.
func deltas(events []string) []string {
	var all []string
	for _, e := range events {
		choice := gjson.Get(e, "choices.0")
		d := choice.Get("delta")
		switch {
		case e == "[DONE]":
			all = append(all, e)
		case gjson.Get(e, "prompt_progress").Exists():
			all = append(all, "progress "+gjson.Get(e, "prompt_progress.processed").Raw)
		case d.Get("role").Exists():
			all = append(all, "role "+d.Get("content").Raw)
		case d.Get("reasoning_content").Exists():
			all = append(all, "thought "+d.Get("reasoning_content").Raw)
		case d.Get("content").Exists():
			all = append(all, "text "+d.Get("content").Raw)
		case d.Get("tool_calls").Exists():
			f := d.Get("tool_calls.0.function")
			all = append(all, "call "+d.Get("tool_calls.0.index").Raw+" "+f.Get("name").Str+f.Get("arguments").Str)
		case choice.Get("finish_reason").Type == gjson.String:
			all = append(all, "finish "+choice.Get("finish_reason").Str+" timings="+yes(gjson.Get(e, "timings")))
		case gjson.Get(e, "choices.#").Int() == 0:
			all = append(all, "usage "+gjson.Get(e, "usage.completion_tokens").Raw+" timings="+yes(gjson.Get(e, "timings")))
		default:
			all = append(all, e)
		}
	}
	return all
}

func yes(r gjson.Result) string {
	if r.Exists() {
		return "yes"
	}
	return "no"
}

// wantStream checks a whole stream that ends well.
func wantStream(t *testing.T, s *stream, want ...string) []string {
	t.Helper()
	events, err := s.rest()
	if !errors.Is(err, io.EOF) {
		t.Fatalf("the stream ended with %v", err)
	}
	if diff := cmp.Diff(want, deltas(events)); diff != "" {
		t.Errorf("stream: %s", diff)
	}
	return events
}

func TestChat_Whole(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, nil)
	_, body := r.ask(chatPath, chatBody(`"verbose":true`))
	for path, want := range map[string]string{
		"choices.0.message.content": "Hello from the fake engine.", "choices.0.message.role": "assistant", "choices.0.finish_reason": "stop",
		"model": "tiny", "object": "chat.completion", "system_fingerprint": "b11669-fake", "usage.completion_tokens": "5",
		"usage.prompt_tokens_details.cached_tokens": "0", "timings.predicted_n": "5", "__verbose.stop_type": "eos",
	} {
		if got := gjson.Get(body, path).String(); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if id := gjson.Get(body, "id").Str; !strings.HasPrefix(id, "chatcmpl-") || len(id) != len("chatcmpl-")+32 {
		t.Errorf("id %q", id)
	}
	r.awaitN(fakeengine.Finished, 1)
}

func TestChat_StreamOrder(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, nil)
	s := r.stream("")
	if got := s.resp.Header.Get("Content-Type"); got != "text/event-stream" || s.resp.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("headers: %v", s.resp.Header)
	}
	wantStream(t, s, "role null", `text "Hello"`, `text " from"`, `text " the"`, `text " fake"`, `text " engine."`,
		"finish stop timings=yes", "[DONE]")
	wantStream(t, r.stream(`,"stream_options":{"include_usage":true},"max_tokens":2`),
		"role null", `text "Hello"`, `text " from"`, "finish length timings=no", "usage 2 timings=yes", "[DONE]")
	events := wantStream(t, r.stream(`,"stop":["zebra"," fake"],"verbose":true`),
		"role null", `text "Hello"`, `text " from"`, `text " the"`, "finish stop timings=yes", "[DONE]")
	last := events[len(events)-2]
	if gjson.Get(last, "__verbose.stop_type").Str != "word" || gjson.Get(last, "__verbose.stopping_word").Str != " fake" {
		t.Errorf("last chunk: %s", last)
	}
}

func TestChat_PromptProgress(t *testing.T) {
	t.Parallel()
	rule := fakeengine.Rule{PromptTokens: 1000, CachedTokens: 300, Answer: fakeengine.Answer{Text: "ok"}}
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{rule}}, nil, "-b", "256")
	events := wantStream(t, r.stream(`,"return_progress":true`),
		"progress 300", "progress 556", "progress 812", "progress 1000", "role null", `text "ok"`, "finish stop timings=yes", "[DONE]")
	if got := gjson.Get(events[0], "prompt_progress.total").Int(); got != 1000 || gjson.Get(events[0], "prompt_progress.cache").Int() != 300 {
		t.Errorf("first: %s", events[0])
	}
}

func TestChat_ReasoningAndToolCallsThenASecondAnswer(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		Answer: fakeengine.Answer{
			Reasoning: "Let me see.",
			Calls:     []fakeengine.ToolCall{{Name: "look", Arguments: `{"at":"é"}`}, {Name: "wait"}},
		},
		AfterTools: []fakeengine.Answer{{Text: "It rains."}},
	}}}, nil)
	wantStream(t, r.stream(""), "role null", `thought "Let"`, `thought " me"`, `thought " see."`,
		`call 0 look{`, `call 0 "at"`, `call 0 :"é`, `call 0 "}`, `call 1 wait`, "finish tool_calls timings=yes", "[DONE]")
	_, whole := r.ask(chatPath, chatBody(`"chat_template_kwargs":{"enable_thinking":false}`))
	message := gjson.Get(whole, "choices.0.message")
	if message.Get("reasoning_content").Exists() || message.Get("tool_calls.0.function.arguments").Str != `{"at":"é"}` ||
		message.Get("tool_calls.1.function.arguments").Raw != `""` || len(message.Get("tool_calls.1.id").Str) != 32 {
		t.Errorf("message: %s", message.Raw)
	}
	_, second := r.ask(chatPath, `{"messages":[{"role":"user","content":"hi"},
		{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"look","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"1","content":"rain"}]}`)
	if got := gjson.Get(second, "choices.0.message.content").Str; got != "It rains." {
		t.Errorf("after the tool's result: %q", got)
	}
}

func TestChat_ChunksAndChoices(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Chunks: 1000}}}}, nil, "-np", "2")
	if got := r.stream("").contents(1000); got[999] != " engine." {
		t.Errorf("the last of a thousand is %q", got[999])
	}
	_, two := r.ask(chatPath, chatBody(`"n":2,"max_tokens":1`))
	if gjson.Get(two, "choices.#").Int() != 2 || gjson.Get(two, "choices.1.message.content").Str != "Hello" {
		t.Errorf("n=2: %s", two)
	}
	status, body := r.ask(chatPath, chatBody(`"n":3`))
	if status != 400 || gjson.Get(body, "error.message").Str != "Field 'n': Value must be between 1 <= value <= 2, but got 3" {
		t.Errorf("n=3: %d %s", status, body)
	}
}

func TestChat_Refusals(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: "busy", Status: 429, Body: `{"custom":true}`},
		{Contains: "broken", Status: 500},
		{Contains: "long", PromptTokens: 600},
		{Path: "/props", Status: 502},
		{Nth: 99, Status: 418},
	}}, nil, "-c", "512", "-np", "1")
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{chatPath, chatBody(`"user":"busy"`), 429, `{"custom":true}`},
		{chatPath, chatBody(`"user":"broken"`), 500, `{"error":{"code":500,"message":"scripted status 500","type":"server_error"}}`},
		{chatPath, chatBody(`"user":"long","stream":true`), 400, `{"error":{"code":400,"message":"request (600 tokens) exceeds the ` +
			`available context size (512 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":600,"n_ctx":512}}`},
		{chatPath, `{"messages":`, 400, `invalid_request_error`},
		{"/props", "", 502, `scripted status 502`},
		{"/nowhere", "", 404, `{"error":{"message":"File Not Found","type":"not_found_error","code":404}}`},
		{"/v1/embeddings", `{"input":"a"}`, 501, `Start it with`},
		{"/tokenize", `{"content":"one two  three"}`, 200, `{"tokens":[`},
	} {
		status, body := r.ask(c.path, c.body)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, body)
		}
	}
}

func TestChat_OtherEndpointsThatGenerate(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, nil, "--embeddings")
	_, body := r.ask("/v1/completions", `{"prompt":"Once upon","max_tokens":2}`)
	if gjson.Get(body, "choices.0.text").Str != "Hello from" || gjson.Get(body, "object").Str != "text_completion" {
		t.Errorf("completion: %s", body)
	}
	_, body = r.ask("/v1/completions", `{"prompt":"Once upon","max_tokens":1,"stream":true}`)
	if !strings.Contains(body, `"text":"Hello"`) || !strings.HasSuffix(body, "data: [DONE]\n\n") || strings.Contains(body, "delta") {
		t.Errorf("streamed completion: %s", body)
	}
	_, body = r.ask("/v1/embeddings", `{"model":"m","input":["a","b"]}`)
	if gjson.Get(body, "data.1.embedding.#").Int() != 8 || gjson.Get(body, "model").Str != "m" {
		t.Errorf("embeddings: %s", body)
	}
}

func TestAPIKey_GuardsAllButHealth(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, []string{"LLAMA_API_KEY=a,b"}, "--api-key", "c")
	want := `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`
	for _, path := range []string{"/v1/models", "/props", "/slots"} {
		if status, body := r.ask(path, ""); status != 401 || body != want {
			t.Errorf("%s without a key: %d %s", path, status, body)
		}
	}
	if status, _ := r.ask(chatPath, chatBody("")); status != 401 {
		t.Errorf("chat without a key: %d", status)
	}
	if status, _ := r.ask("/v1/health", ""); status != 200 {
		t.Errorf("health without a key: %d", status)
	}
	for _, r.key = range []string{"a", "b", "c"} {
		if status, _ := r.ask(chatPath, chatBody("")); status != 200 {
			t.Errorf("chat with key %s: %d", r.key, status)
		}
	}
	r.awaitN(fakeengine.Finished, 3)
}
