package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// v0ChatPath is the v0 API's chat.
const v0ChatPath = "/api/v0/chat/completions"

// small is a model's settings: little context, two slots.
var small = harness.Config{LM: []string{
	"model " + harness.Model + " {", "\tcontext_length 1024", "\tparallel 2", "}",
	"preset careful {", "\ttemperature 0", "\tmax_tokens 3", "}",
}}

func TestChat_Choices(t *testing.T) {
	t.Parallel()
	eachEngine(t, small, chatChoices)
}

func chatChoices(t *testing.T, s *harness.Server) {
	request := harness.Ask(capital).With("n", 3)
	whole := s.Post(harness.ChatPath, request).Want(t, 200)
	if texts := whole.Get("choices.#.message.content").String(); texts != fmt.Sprintf(`["%s","%s","%s"]`, paris, paris, paris) {
		t.Errorf("texts %s", texts)
	}
	one := s.Chat(harness.Ask(capital)).Usage
	usage := whole.Get("usage")
	if usage.Get("prompt_tokens").Int() != one.Prompt || usage.Get("completion_tokens").Int() != 3*one.Completion {
		t.Errorf("usage %s; one answer has %+v", usage, one)
	}
	stream := s.Stream(request.With("stream_options", harness.Fields{"include_usage": true}))
	stream.WaitEnd()
	texts := map[int64]string{}
	for _, chunk := range stream.Chunks() {
		if choice := chunk.Get("choices.0"); choice.Exists() {
			texts[choice.Get("index").Int()] += choice.Get("delta.content").Str
		} else if got := chunk.Get("usage.completion_tokens").Int(); got != 3*one.Completion {
			t.Errorf("usage in the stream: %s", chunk)
		}
	}
	if diff := cmp.Diff(map[int64]string{0: paris, 1: paris, 2: paris}, texts); diff != "" || !stream.IsWhole() {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChat_PresetsAndTheirAbsence(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), small)
	if a := s.Chat(harness.Ask(capital).With("preset", "careful")); a.Finish != "length" || a.Usage.Completion != 3 {
		t.Errorf("with a limit of 3: %+v", a)
	}
	if a := s.Chat(harness.Ask(capital).With("preset", "careful").With("max_tokens", -1)); a.Content != paris {
		t.Errorf("with none: %+v", a)
	}
	refused := s.Post(harness.ChatPath, harness.Ask(capital).With("preset", "rash")).Want(t, 400)
	if refused.Get("error.code").Str != "unknown_preset" || !strings.Contains(refused.Body, "careful") {
		t.Errorf("%s", refused.Body)
	}
}

func TestChat_StructuredOutput(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), small)
	schema := harness.Fields{
		"type": "object", "required": []string{"colour"}, "additionalProperties": false,
		"properties": harness.Fields{"colour": harness.Fields{"enum": []string{"red", "blue"}}},
	}
	for name, format := range map[string]harness.Fields{
		"strict as a boolean": {"type": "json_schema", "json_schema": harness.Fields{"name": "c", "strict": true, "schema": schema}},
		"strict as a string":  {"type": "json_schema", "json_schema": harness.Fields{"name": "c", "strict": "true", "schema": schema}},
		"without its holder":  {"type": "json_schema", "schema": schema},
	} {
		a := s.In(t).Chat(harness.Ask("Which colour?").With("response_format", format).With("max_tokens", 100).With("reasoning_effort", "none"))
		var got struct{ Colour string }
		if err := json.Unmarshal([]byte(a.Content), &got); err != nil || got.Colour != "red" && got.Colour != "blue" {
			t.Errorf("%s: %q: %v", name, a.Content, err)
		}
	}
}

func TestChat_ReasoningEffort(t *testing.T) {
	t.Parallel()
	eachEngine(t, small, chatReasoningEffort)
}

func chatReasoningEffort(t *testing.T, s *harness.Server) {
	for effort, thinks := range map[string]bool{"none": false, "minimal": true, "xhigh": true} {
		a := s.Chat(harness.Ask(capital).With("reasoning_effort", effort))
		if (a.Reasoning != "") != thinks {
			t.Errorf("%s: reasoning %q", effort, a.Reasoning)
		}
	}
}

func TestChat_Logprobs(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), small)
	request := harness.Ask(capital).With("reasoning_effort", "none")
	if reply := s.Post(harness.ChatPath, request).Want(t, 200); reply.Get("choices.0.logprobs").Raw != "null" {
		t.Errorf("unasked: %s", reply.Body)
	}
	reply := s.Post(harness.ChatPath, request.With("logprobs", true).With("top_logprobs", 2)).Want(t, 200)
	text := ""
	for _, token := range reply.Get("choices.0.logprobs.content").Array() {
		text += token.Get("token").Str
		if n := len(token.Get("top_logprobs").Array()); n != 2 {
			t.Errorf("%d of the likeliest: %s", n, token)
		}
	}
	if text != paris {
		t.Errorf("the tokens are %q", text)
	}
}

func TestToolCall_Choices(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), small)
	named := harness.Fields{"type": "function", "function": harness.Fields{"name": "echo"}}
	if a := s.Chat(useEcho.With("tool_choice", named)); len(a.Calls) != 1 || a.Calls[0].Name != "echo" {
		t.Errorf("by its name: %+v", a)
	}
	if a := s.Chat(useEcho.With("tool_choice", "none").With("max_tokens", 100)); len(a.Calls) > 0 || a.Finish == "tool_calls" {
		t.Errorf("none: %+v", a)
	}
	unknown := harness.Fields{"type": "function", "function": harness.Fields{"name": "shout"}}
	refused := s.Post(harness.ChatPath, useEcho.With("tool_choice", unknown)).Want(t, 400)
	if refused.Get("error.param").Str != "tool_choice" || !strings.Contains(refused.Body, "echo") {
		t.Errorf("an unknown one: %s", refused.Body)
	}
}

func TestToolCall_CutByTheLimitIsContent(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), small)
	whole := s.Chat(useEcho).Usage.Completion
	a := s.Chat(useEcho.With("max_tokens", whole-3))
	if a.Finish != "length" || len(a.Calls) > 0 || !strings.Contains(a.Content, `"arguments":{`) {
		t.Errorf("%+v", a)
	}
}

func TestV0_StopReasons(t *testing.T) {
	t.Parallel()
	eachEngine(t, small, v0StopReasons)
}

func v0StopReasons(t *testing.T, s *harness.Server) {
	for want, request := range map[string]harness.Fields{
		"eosFound":                  harness.Ask(capital),
		"stopStringFound":           harness.Ask(capital).With("stop", []string{"France"}),
		"maxPredictedTokensReached": harness.Ask(capital).With("max_tokens", 3),
		"toolCalls":                 useEcho,
		"contextLengthReached":      harness.Ask(capital).Endless(),
	} {
		reply := s.In(t).Post(v0ChatPath, request).Want(t, 200)
		stats := reply.Get("stats")
		if stats.Get("stop_reason").Str != want || stats.Get("tokens_per_second").Num <= 0 || strings.Contains(reply.Body, "__verbose") {
			t.Errorf("want %s: %s, usage %s", want, stats, reply.Get("usage"))
		}
		if got := reply.Get("model_info.context_length").Int(); got != 1024 {
			t.Errorf("context length %d", got)
		}
		streamed := s.Post(v0ChatPath, request.With("stream", true)).Want(t, 200)
		all := strings.Split(strings.TrimSuffix(streamed.Body, "\n\ndata: [DONE]\n\n"), "data: ")
		if got := gjson.Get(all[len(all)-1], "stats.stop_reason").Str; got != want {
			t.Errorf("in a stream: %q, want %s", got, want)
		}
	}
}
