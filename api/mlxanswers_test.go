package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// told is what a client of any dialect makes of an answer, streamed or not.
type told struct {
	text, thought string
	calls         []string // names and arguments
	prompt        int64
	generated     int64
}

// toldBy reads an answer in one piece.
func toldBy(path, body string) (got told) {
	b := gjson.Parse(body)
	usage := b.Get("usage")
	got.prompt, got.generated = usage.Get("prompt_tokens").Int(), usage.Get("completion_tokens").Int()
	switch path {
	case "/v1/messages":
		got.prompt, got.generated = usage.Get("input_tokens").Int()+usage.Get("cache_read_input_tokens").Int(), usage.Get("output_tokens").Int()
		for _, block := range b.Get("content").Array() {
			got.text += block.Get("text").Str
			got.thought += block.Get("thinking").Str
			if block.Get("type").Str == "tool_use" {
				got.calls = append(got.calls, block.Get("name").Str+block.Get("input").Raw)
			}
		}
	case "/v1/responses", "/api/v1/chat":
		got.prompt, got.generated = usage.Get("input_tokens").Int()+b.Get("stats.input_tokens").Int(), usage.Get("output_tokens").Int()+b.Get("stats.total_output_tokens").Int()
		for _, item := range b.Get("output").Array() {
			switch item.Get("type").Str {
			case "message":
				if item.Get("content").IsArray() {
					got.text += item.Get("content.0.text").Str
				} else {
					got.text += item.Get("content").Str
				}
			case "reasoning":
				got.thought += item.Get("summary.0.text").Str
				if item.Get("content").IsArray() {
					got.thought += item.Get("content.0.text").Str
				} else {
					got.thought += item.Get("content").Str
				}
			case "function_call":
				got.calls = append(got.calls, item.Get("name").Str+item.Get("arguments").Str)
			}
		}
	default:
		choice := b.Get("choices.0")
		got.text = choice.Get("message.content").Str + choice.Get("text").Str
		got.thought = choice.Get("message.reasoning").Str
		for _, call := range choice.Get("message.tool_calls").Array() {
			got.calls = append(got.calls, call.Get("function.name").Str+call.Get("function.arguments").Str)
		}
	}
	return got
}

// Every dialect gets the same of an answer: thoughts, text, calls and usage.
func TestMLX_Answers(t *testing.T) {
	t.Parallel()
	s := serveMLX(t, fakekit.Rule{PromptTokens: 20, CachedTokens: 5, Answer: fakekit.Answer{
		Reasoning: "Let me think.", Text: "Hello there.", Calls: []fakekit.ToolCall{{Name: "near", Arguments: `{"x":1}`}},
	}})
	for path := range mlxDialects {
		t.Run(path, func(t *testing.T) {
			tools := map[string]string{
				"/v1/messages":             `,"tools":[{"name":"near","input_schema":{"type":"object"}}],"thinking":{"type":"enabled","budget_tokens":1024}`,
				"/v1/responses":            `,"tools":[{"type":"function","name":"near","parameters":{"type":"object"}}]`,
				"/v1/chat/completions":     `,"tools":[{"type":"function","function":{"name":"near"}}]`,
				"/api/v0/chat/completions": `,"tools":[{"type":"function","function":{"name":"near"}}]`,
			}[path]
			got, sent := s.ask(path, "hi", tools)
			have := toldBy(path, got.body)
			isText := slices.Contains([]string{"/v1/completions", "/api/v0/completions"}, path)
			want := "Hello there."
			if !isText && tools == "" { // what looks like a call isn't one
				want += "<tool_call>\n{\"name\": \"near\", \"arguments\": {\"x\":1}}\n</tool_call>"
			}
			if got.status != 200 || have.text != want || have.prompt != 20 || have.generated < 3 || have.generated > 20 {
				t.Errorf("%d %+v of %s", got.status, have, got.body)
			}
			if !isText && have.thought != "Let me think." {
				t.Errorf("the thought %q of %s", have.thought, got.body)
			}
			if tools != "" && (len(have.calls) != 1 || have.calls[0] != `near{"x":1}` && have.calls[0] != `near{"x": 1}`) {
				t.Errorf("the calls %q of %s", have.calls, got.body)
			}
			for _, body := range sent {
				if !strings.Contains(body, `"model":"default_model","stream":true`) || strings.Contains(body, `"stop"`) {
					t.Errorf("the engine was sent %s", body)
				}
			}
			_, stream := s.ask(path, "hi", tools+`,"stream":true`)
			if len(stream) != len(sent) || stream[0] != sent[0] {
				t.Errorf("for a stream the engine was sent %q", stream)
			}
		})
	}
}

// Stop strings end an answer wherever they begin and end in the model's tokens. The server isn't told of them.
func TestMLX_StopStrings(t *testing.T) {
	t.Parallel()
	s := serveMLX(t, fakekit.Rule{PromptTokens: 20, Answer: fakekit.Answer{Pieces: []string{"One, tw", "o, th", "ree, four."}, Chunks: 300}})
	for path, field := range map[string]string{
		"/v1/chat/completions": "stop", "/api/v0/chat/completions": "stop", "/v1/completions": "stop", "/api/v0/completions": "stop", "/v1/messages": "stop_sequences",
	} {
		for _, stream := range []string{"", `,"stream":true`} {
			got, _ := s.ask(path, "count", fmt.Sprintf(`,"%s":["o, three"]%s`, field, stream))
			if text := toldBy(path, got.body).text; stream == "" && (got.status != 200 || text != "One, tw") {
				t.Errorf("%s: %d %q", path, got.status, text)
			}
			if strings.Contains(got.body, "four") {
				t.Errorf("%s%s: %s", path, stream, got.body)
			}
		}
	}
	got, _ := s.ask("/api/v0/chat/completions", "count", `,"stop":"o, three"`)
	if gjson.Get(got.body, "stats.stop_reason").Str != "stopStringFound" || gjson.Get(got.body, "usage.prompt_tokens").Int() != 20 {
		t.Errorf("%s", got.body)
	}
}

// A client that wants no parallel calls gets one, though the server knows nothing of that.
func TestMLX_SingleCall(t *testing.T) {
	t.Parallel()
	calls := []fakekit.ToolCall{{Name: "near", Arguments: `{"x":1}`}, {Name: "near", Arguments: `{"x":2}`}}
	s := serveMLX(t, fakekit.Rule{PromptTokens: 20, Answer: fakekit.Answer{Text: "Well.", Calls: calls}})
	const tools = `,"tools":[{"type":"function","function":{"name":"near"}}]`
	for path, more := range map[string]string{
		"/v1/chat/completions": tools + `,"parallel_tool_calls":false`,
		"/v1/messages":         `,"tools":[{"name":"near","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`,
		"/v1/responses":        `,"tools":[{"type":"function","name":"near","parameters":{"type":"object"}}],"parallel_tool_calls":false`,
	} {
		got, _ := s.ask(path, "hi", more)
		if have := toldBy(path, got.body); got.status != 200 || len(have.calls) != 1 || !strings.Contains(have.calls[0], "1") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got, _ := s.ask("/v1/chat/completions", "hi", tools); len(toldBy("", got.body).calls) != 2 {
		t.Errorf("%s", got.body)
	}
}

// Choices are made at a time. Each has a seed of its own, and the prompt counts once.
func TestMLX_Choices(t *testing.T) {
	t.Parallel()
	s := serveMLX(t, fakekit.Rule{PromptTokens: 20, Answer: fakekit.Answer{Text: "Hello there."}})
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		got, sent := s.ask(path, "hi", `,"n":3,"seed":5`)
		var seeds []int64
		for _, body := range sent {
			seeds = append(seeds, gjson.Get(body, "seed").Int())
		}
		slices.Sort(seeds)
		if got.status != 200 || gjson.Get(got.body, "choices.#").Int() != 3 || gjson.Get(got.body, "usage.prompt_tokens").Int() != 20 || !slices.Equal(seeds, []int64{5, 6, 7}) {
			t.Errorf("%s: seeds %v, %d %s", path, seeds, got.status, got.body)
		}
	}
}
