package fakemlx_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
)

// backed starts a fake whose backend is a fake llama-server.
func backed(t *testing.T, backend *fakeengine.Script, rules ...fakekit.Rule) (*fakeengine.Engine, *fakemlx.Engine, *process) {
	t.Helper()
	llama := fakeengine.Install(t, backend)
	e, p := start(t, &fakemlx.Script{Rules: rules, Backend: &fakemlx.Backend{Command: llama.Path, Model: "/models/tiny.gguf"}})
	return llama, e, p.ready()
}

// chunks are the data lines of an answer.
func chunks(answer string) []gjson.Result {
	var all []gjson.Result
	for line := range strings.SplitSeq(answer, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok && data != "[DONE]" {
			all = append(all, gjson.Parse(data))
		}
	}
	return all
}

// said is the text of one field of all deltas.
func said(answer, field string) string {
	var b strings.Builder
	for _, c := range chunks(answer) {
		b.WriteString(c.Get("choices.0." + field).String())
	}
	return b.String()
}

func TestBackend_IsTranslated(t *testing.T) {
	t.Parallel()
	llama, _, p := backed(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Contains: "weather", PromptTokens: 20, CachedTokens: 5, Answer: fakeengine.Answer{
		Reasoning: "Hm, hm.", Text: "I ask.", Calls: []fakeengine.ToolCall{
			{Name: "get_weather", Arguments: `{"city": "Paris"}`}, {Name: "get_weather", Arguments: `{"city": "Rome"}`},
		},
	}}}})
	answer := p.post("/v1/chat/completions", `{"stream": true, "stream_options": {"include_usage": true}, "top_k": 7, "repetition_penalty": 1.5,
		"messages": [{"role": "user", "content": "weather"}], "tools": [{"type": "function", "function": {"name": "get_weather"}}]}`)
	if got := said(answer, "delta.reasoning"); got != "Hm, hm." {
		t.Errorf("reasoning %q", got)
	}
	if got := said(answer, "delta.content"); got != "I ask." {
		t.Errorf("content %q", got)
	}
	var calls []string
	for _, c := range chunks(answer) {
		for _, call := range c.Get("choices.0.delta.tool_calls").Array() {
			calls = append(calls, call.Get("index").Raw+call.Get("function.arguments").String())
		}
	}
	if want := []string{`0{"city": "Paris"}`, `1{"city": "Rome"}`}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
	all := chunks(answer)
	if usage := all[len(all)-1].Get("usage"); usage.Get("prompt_tokens").Int() != 20 || usage.Get("prompt_tokens_details.cached_tokens").Int() != 5 {
		t.Errorf("usage %s", usage.Raw)
	}
	if got := said(answer, "finish_reason"); got != "tool_calls" {
		t.Errorf("finish reason %q", got)
	}
	if !strings.Contains(answer, ": keepalive 15/15\n\n") || strings.Contains(answer, ": keepalive 0/") {
		t.Errorf("progress of 15 tokens is missing in %q", answer)
	}
	sent := llama.Wait(t, func(e fakekit.Event) bool { return e.Kind == fakekit.Request && strings.Contains(e.Body, "weather") })
	if top, penalty := gjson.Get(sent.Body, "top_k").Int(), gjson.Get(sent.Body, "repeat_penalty").Float(); top != 7 || penalty != 1.5 {
		t.Errorf("the backend was asked with top_k %d, repeat_penalty %v", top, penalty)
	}
}

func TestBackend_RefusalIsNotFound(t *testing.T) {
	t.Parallel()
	_, _, p := backed(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Contains: "How", Status: 400, Body: `{"error": {"message": "no such role"}}`}}})
	answer := p.post("/v1/chat/completions", chat(""))
	if !strings.HasPrefix(answer, "HTTP/1.0 404 ") || !strings.HasSuffix(answer, `{"error": "no such role"}`) {
		t.Errorf("answered with %q", answer)
	}
}

func TestBackend_FaultsOfTheScriptHold(t *testing.T) {
	t.Parallel()
	_, e, p := backed(t, nil, fakekit.Rule{Cues: []fakekit.Cue{{After: 2, Gate: "two", Do: fakekit.Cut}}})
	answered := p.later("/v1/chat/completions", chat(""))
	e.Wait(t, fakekit.At("two"))
	e.Release("two")
	if answer := <-answered; said(answer, "delta.content") != "Hello from" || strings.Contains(answer, "[DONE]") {
		t.Errorf("answered with %q", answer)
	}
}

func TestBackend_EndsWithTheFake(t *testing.T) {
	t.Parallel()
	llama, _, p := backed(t, nil)
	pid := llama.Wait(t, fakekit.Is(fakekit.Ready)).PID
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	llama.WaitGone(t, pid)
}
