package e2e

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var useEcho = harness.Ask("Use echo with message hello world").With("tools", []harness.Fields{{
	"type": "function",
	"function": harness.Fields{
		"name":        "echo",
		"description": "Says what it is told",
		"parameters": harness.Fields{
			"type":       "object",
			"properties": harness.Fields{"message": harness.Fields{"type": "string"}},
			"required":   []string{"message"},
		},
	},
}})

func TestToolCall_HasTheArgumentsThatWereAskedFor(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, toolCallHasTheArgumentsThatWereAskedFor)
}

func toolCallHasTheArgumentsThatWereAskedFor(t *testing.T, s *harness.Server) {
	for name, ask := range map[string]func(*harness.Server) harness.Answer{
		"in one piece": func(s *harness.Server) harness.Answer { return s.Chat(useEcho) },
		"streamed":     func(s *harness.Server) harness.Answer { return s.Stream(useEcho).Answer() },
	} {
		t.Run(name, func(t *testing.T) {
			a := ask(s.In(t))
			if a.Finish != "tool_calls" || a.Content != "" || len(a.Calls) != 1 {
				t.Fatalf("%+v", a)
			}
			var arguments map[string]any
			if err := json.Unmarshal([]byte(a.Calls[0].Arguments), &arguments); err != nil {
				t.Fatalf("arguments %q: %v", a.Calls[0].Arguments, err)
			}
			want := map[string]any{"message": "hello world"}
			if diff := cmp.Diff(want, arguments); diff != "" || a.Calls[0].Name != "echo" {
				t.Errorf("a call of %q with arguments (-want +got):\n%s", a.Calls[0].Name, diff)
			}
		})
	}
}

func TestToolCall_ResultIsGivenToTheModel(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, toolCallResultIsGivenToTheModel)
}

func toolCallResultIsGivenToTheModel(t *testing.T, s *harness.Server) {
	called := s.Post(harness.ChatPath, useEcho).Want(t, 200)
	call := called.Get("choices.0.message.tool_calls.0")
	if call.Get("id").Str == "" || call.Get("type").Str != "function" {
		t.Fatalf("no call: %s", called.Body)
	}
	messages := append(useEcho["messages"].([]harness.Fields),
		harness.Fields{"role": "assistant", "tool_calls": []json.RawMessage{json.RawMessage(call.Raw)}},
		harness.Fields{"role": "tool", "tool_call_id": call.Get("id").Str, "content": "red river"})
	a := s.Chat(useEcho.With("messages", messages))
	if a.Content != "The tool returned: red river" || a.Finish != "stop" {
		t.Errorf("%+v", a)
	}
}
