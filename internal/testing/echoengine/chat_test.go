package echoengine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// The user's lines that call two tools in parallel, one of them without arguments.
const twoCalls = "well\ncall near {\"x\":1}\ncall far {\"y\":\"two words\"}\ncall near"

// The tools, as OpenAI and Anthropic have them.
const (
	openAITools    = `,"tools":[{"type":"function","function":{"name":"near"}},{"type":"function","function":{"name":"far"}}]`
	anthropicTools = `,"tools":[{"name":"near","input_schema":{"type":"object"}},{"name":"far","input_schema":{"type":"object"}}]`
)

// choice is what a client makes of one choice of a chat.
type choice struct {
	Content, Reasoning, Finish string
	Calls                      []string // each a name and its arguments
}

// wholeChoices are the choices of a body.
func wholeChoices(body string) []choice {
	var all []choice
	for _, c := range gjson.Get(body, "choices").Array() {
		m := c.Get("message")
		made := choice{Content: m.Get("content").Str, Reasoning: m.Get("reasoning").Str, Finish: c.Get("finish_reason").Str}
		for _, call := range m.Get("tool_calls").Array() {
			made.Calls = append(made.Calls, call.Get("function.name").Str+call.Get("function.arguments").Str)
		}
		all = append(all, made)
	}
	return all
}

// streamedChoices are the choices of a stream, its calls put together by their index.
func streamedChoices(stream string) []choice {
	var all []choice
	for _, frame := range frames(stream) {
		for _, c := range frame.Get("choices").Array() {
			n := int(c.Get("index").Int())
			for len(all) <= n {
				all = append(all, choice{})
			}
			made, delta := &all[n], c.Get("delta")
			made.Content += delta.Get("content").Str
			made.Reasoning += delta.Get("reasoning").Str
			made.Finish += c.Get("finish_reason").Str
			for _, call := range delta.Get("tool_calls").Array() {
				i := int(call.Get("index").Int())
				for len(made.Calls) <= i {
					made.Calls = append(made.Calls, "")
				}
				made.Calls[i] += call.Get("function.name").Str + call.Get("function.arguments").Str
			}
		}
	}
	return all
}

// usageOf is the usage of a body or of a stream's last frame: of the prompt, of the answer, and of its thinking.
func usageOf(u gjson.Result) [3]int {
	return [3]int{int(u.Get("prompt_tokens").Int()), int(u.Get("completion_tokens").Int()), int(u.Get("completion_tokens_details.reasoning_tokens").Int())}
}

// The same comes of a chat whether it is streamed or not, on both OpenAI-style endpoints.
func TestChat(t *testing.T) {
	t.Parallel()
	s := serve(t)
	calls := []string{`near{"x":1}`, `far{"y":"two words"}`, `near{}`}
	for name, tt := range map[string]struct {
		prompt, more string
		want         []choice
		usage        [3]int
	}{
		"a text":           {"hello there", "", []choice{{Content: "hello there", Finish: "stop"}}, [3]int{2, 2, 0}},
		"thinking":         {"think of it\nyes", "", []choice{{Content: "yes", Reasoning: "of it", Finish: "stop"}}, [3]int{4, 3, 2}},
		"a limit":          {"a b c d", `,"max_tokens":2`, []choice{{Content: "a b ", Finish: "length"}}, [3]int{4, 2, 0}},
		"a stop string":    {"hello big world", `,"stop":["g wo"]`, []choice{{Content: "hello bi", Finish: "stop"}}, [3]int{3, 3, 0}},
		"thinking of one":  {"think there\nyes", `,"stop":["e"]`, []choice{{Content: "y", Reasoning: "there", Finish: "stop"}}, [3]int{3, 2, 1}},
		"two choices":      {"hi", `,"n":2`, []choice{{Content: "hi", Finish: "stop"}, {Content: "hi", Finish: "stop"}}, [3]int{1, 2, 0}},
		"calls":            {twoCalls, openAITools, []choice{{Content: "well", Calls: calls, Finish: "tool_calls"}}, [3]int{10, 8, 0}},
		"calls and stops":  {twoCalls, openAITools + `,"stop":"words"`, []choice{{Content: "well", Calls: calls, Finish: "tool_calls"}}, [3]int{10, 8, 0}},
		"one call":         {twoCalls, openAITools + `,"parallel_tool_calls":false`, []choice{{Content: "well", Calls: calls[:1], Finish: "tool_calls"}}, [3]int{10, 8, 0}},
		"a demanded call":  {"hi", openAITools + `,"tool_choice":"required"`, []choice{{Calls: []string{`near{"said":"hi"}`}, Finish: "tool_calls"}}, [3]int{1, 3, 0}},
		"a named function": {"hi", openAITools + `,"tool_choice":{"type":"function","function":{"name":"far"}}`, []choice{{Calls: []string{`far{"said":"hi"}`}, Finish: "tool_calls"}}, [3]int{1, 3, 0}},
	} {
		for _, path := range []string{"/v1/chat/completions", "/api/v0/chat/completions"} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				status, body := s.chat(path, tt.prompt, tt.more)
				if diff := cmp.Diff(tt.want, wholeChoices(body)); status != 200 || diff != "" {
					t.Errorf("status %d (-want +got):\n%s\n%s", status, diff, body)
				}
				if got := usageOf(gjson.Get(body, "usage")); got != tt.usage {
					t.Errorf("usage %v, want %v", got, tt.usage)
				}
				status, stream := s.chat(path, tt.prompt, tt.more+`,"stream":true,"stream_options":{"include_usage":true}`)
				if diff := cmp.Diff(tt.want, streamedChoices(stream)); status != 200 || diff != "" {
					t.Errorf("stream, status %d (-want +got):\n%s\n%s", status, diff, stream)
				}
				all := frames(stream)
				if got := usageOf(all[len(all)-1].Get("usage")); got != tt.usage || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
					t.Errorf("usage %v, want %v, of the stream:\n%s", got, tt.usage, stream)
				}
			})
		}
	}
}

// The v0 API has figures that the engine doesn't tell, and says what answered.
func TestChat_V0(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, body := s.chat("/api/v0/chat/completions", "hello big world", "")
	if speed := gjson.Get(body, "stats.tokens_per_second"); speed.Num <= 0 || gjson.Get(body, "stats.stop_reason").Str != "eosFound" {
		t.Errorf("stats %s", gjson.Get(body, "stats"))
	}
	if got, want := gjson.Get(body, "runtime").Raw, `{"name":"echo","version":"v7","supported_formats":["echo"]}`; got != want {
		t.Errorf("runtime %s", got)
	}
	if got, want := gjson.Get(body, "model_info").Raw, `{"arch":"echo","quant":"","format":"echo","context_length":40}`; got != want {
		t.Errorf("model_info %s", got)
	}
}
