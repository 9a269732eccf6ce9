package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// weather is a tool that no conversation in the tests calls for.
var weather = harness.Fields{
	"type": "object", "properties": harness.Fields{"city": harness.Fields{"type": "string", "enum": []string{"Oslo", "Paris"}}}, "required": []string{"city"},
}

// TestDemandedCall_IsMade whatever the model would say otherwise, and whether or not it thinks.
func TestDemandedCall_IsMade(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	tool := harness.Fields{"type": "function", "function": harness.Fields{"name": "get_weather", "parameters": weather}}
	named := harness.Fields{"type": "function", "function": harness.Fields{"name": "get_weather"}}
	for name, request := range map[string]harness.Fields{
		"required":                harness.Ask("Hello").With("tool_choice", "required"),
		"by its name":             harness.Ask("What is the capital of France?").With("tool_choice", named),
		"required, one at a time": harness.Ask("Hello").With("tool_choice", "required").With("parallel_tool_calls", false),
		"without thinking":        harness.Ask("Hello").With("tool_choice", "required").With("reasoning_effort", "none"),
		"with stop strings":       harness.Ask("Hello").With("tool_choice", "required").With("stop", []string{"{", "city"}),
	} {
		request = request.With("tools", []harness.Fields{tool})
		for how, answer := range map[string]func(*harness.Server) harness.Answer{
			"in one piece": func(s *harness.Server) harness.Answer { return s.Chat(request) },
			"streamed":     func(s *harness.Server) harness.Answer { return s.Stream(request).Answer() },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				a := answer(s.In(t))
				if a.Finish != "tool_calls" || a.Content != "" || len(a.Calls) != 1 || a.Calls[0].Name != "get_weather" {
					t.Fatalf("%+v", a)
				}
				wantCity(t, a.Calls[0].Arguments)
			})
		}
	}
	for name, choice := range map[string]harness.Fields{"any": {"type": "any"}, "tool": {"type": "tool", "name": "get_weather"}} {
		t.Run("messages, "+name, func(t *testing.T) {
			r := s.In(t).Post("/v1/messages", harness.Ask("Hello").With("max_tokens", 400).With("tool_choice", choice).
				With("tools", []harness.Fields{{"name": "get_weather", "input_schema": weather}})).Want(t, 200)
			if r.Get("stop_reason").Str != "tool_use" || r.Get("content.#").Int() != 1 || r.Get("content.0.name").Str != "get_weather" {
				t.Fatal(r.Body)
			}
			wantCity(t, r.Get("content.0.input").Raw)
		})
	}
}

func wantCity(t *testing.T, arguments string) {
	t.Helper()
	var got struct{ City string }
	if err := json.Unmarshal([]byte(arguments), &got); err != nil || got.City != "Oslo" && got.City != "Paris" {
		t.Errorf("arguments %s: %v", arguments, err)
	}
}

// TestStop_LeavesThinkingAlone: the model's thoughts end with a newline and contain words of its answers.
func TestStop_LeavesThinkingAlone(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, stopLeavesThinkingAlone)
}

func stopLeavesThinkingAlone(t *testing.T, s *harness.Server) {
	const question = "What is the capital of France?"
	for stop, want := range map[string]string{"\n": "The capital of France is Paris.", "of Fr": "The capital "} {
		t.Run(strings.TrimSpace(stop), func(t *testing.T) {
			s := s.In(t)
			request := harness.Ask(question).With("stop", []string{stop, ""})
			for how, a := range map[string]harness.Answer{"in one piece": s.Chat(request), "streamed": s.Stream(request).Answer()} {
				if a.Content != want || a.Reasoning == "" || a.Finish != "stop" {
					t.Errorf("%s: %+v", how, a)
				}
			}
			r := s.Post("/v1/messages", harness.Ask(question).With("max_tokens", 200).With("stop_sequences", []string{stop}).
				With("thinking", harness.Fields{"type": "adaptive"})).Want(t, 200)
			if r.Get("content.1.text").Str != want || (r.Get("stop_reason").Str == "stop_sequence") != (stop != "\n") {
				t.Error(r.Body)
			}
			if native := s.NativeChat(harness.NativeAsk(question).With("stop", stop)); native.Get("output.1.content").Str != want {
				t.Error(native.Raw)
			}
		})
	}
}

// TestThinking_IsCountedInTokens of the engine's tokenizer, with any stop strings.
func TestThinking_IsCountedInTokens(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, thinkingIsCountedInTokens)
}

func thinkingIsCountedInTokens(t *testing.T, s *harness.Server) {
	for name, request := range map[string]harness.Fields{
		"plain":        harness.Ask("Hello"),
		"stop strings": harness.Ask("Hello").With("stop", []string{"The user greets me. I greet back. And then", "zebra"}),
	} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			r := s.Post(harness.ChatPath, request).Want(t, 200)
			if r.Get("choices.0.message.reasoning").Str != "The user greets me. I greet back.\n" {
				t.Fatal(r.Body)
			}
			if n := r.Get("usage.completion_tokens_details.reasoning_tokens").Int(); n != 12 { // by /tokenize
				t.Errorf("%d tokens of thinking, want 12", n)
			}
		})
	}
}
