package api

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

// What differs from run to run in a chat, beside what differs anywhere.
var (
	chatID      = regexp.MustCompile(`"id":"chatcmpl-[a-z2-7]{26}"`)
	chatTimings = regexp.MustCompile(`"timings":\{[^}]*\}`)
)

func maskedChat(body string) string {
	return chatTimings.ReplaceAllString(chatID.ReplaceAllString(masked(body), `"id":"chatcmpl-…"`), `"timings":{…}`)
}

// TestGolden_Chat keeps a request, what its engine is sent, and the answer, for all that chats can ask for.
func TestGolden_Chat(t *testing.T) {
	t.Parallel()
	weather := []fakeengine.ToolCall{{Name: "get_weather", Arguments: `{"city":"Oslo"}`, ID: "a"}, {Name: "get_weather", Arguments: `{"city":"Paris"}`, ID: "b"}}
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: "Weather", PromptTokens: 20, Answer: fakeengine.Answer{Pieces: []string{"Let me see."}, Calls: weather}, AfterTools: []fakeengine.Answer{{Text: "It rains."}}},
		{Contains: "Schema", PromptTokens: 20, Answer: fakeengine.Answer{Text: `{"a":1}`}},
		{Contains: "Long", PromptTokens: 4000},
		{Contains: "Broken", PromptTokens: 9, Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Fault}}},
		{PromptTokens: 9, CachedTokens: 4, DraftTokens: 6, DraftAccepted: 4, Answer: fakeengine.Answer{Reasoning: "A greeting.", Text: "Hello there."}},
	}}, shortContext, withPresets, withDraft(t), withoutStates)
	const chat, stream, usage = "/v1/chat/completions", `,"stream":true`, `,"stream":true,"stream_options":{"include_usage":true}`
	const tool = `{"type":"function","function":{"name":"%s","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}`
	tools := `,"tools":[` + fmt.Sprintf(tool, "get_weather") + "," + fmt.Sprintf(tool, "get_time") + `]`
	for _, tt := range []struct{ name, path, user, more string }{
		{"chat", chat, "Hello", ""},
		{"chat-stream", chat, "Hello", stream},
		{"chat-usage", chat, "Hello", usage},
		{"chat-parameters", chat, "Hello", `,"top_p":0.9,"top_k":20,"temperature":0.5,"max_tokens":-5,"stop":"bye","presence_penalty":0.1,"frequency_penalty":0.2,"logit_bias":{"5":-1},"repeat_penalty":1.1,"seed":7,"x_unknown":[1]`},
		{"chat-limit", chat, "Hello", `,"max_completion_tokens":2`},
		{"chat-choices", chat, "Hello", `,"n":2,"seed":4294967294`},
		{"chat-effort", chat, "Hello", `,"reasoning_effort":"none"`},
		{"chat-preset", chat, "Hello", `,"preset":"careful","ttl":60`},
		{"chat-draft", chat, "Hello", `,"draft_model":"tinydraft"`},
		{"chat-draft-stream", chat, "Hello", `,"draft_model":"tinydraft"` + stream},
		{"chat-tools", chat, "Weather", tools},
		{"chat-tools-stream", chat, "Weather", tools + stream},
		{"chat-tools-single", chat, "Weather", tools + `,"parallel_tool_calls":false`},
		{"chat-tools-single-stream", chat, "Weather", tools + `,"parallel_tool_calls":false` + stream},
		{"chat-tools-named", chat, "Weather", tools + `,"tool_choice":{"type":"function","function":{"name":"get_weather"}}`},
		{"chat-tools-none", chat, "Hello", tools + `,"tool_choice":"none"`},
		{"chat-tools-cut", chat, "Weather", tools + `,"max_tokens":3`},
		{"chat-tools-cut-stream", chat, "Weather", tools + `,"max_tokens":3` + stream},
		{"chat-schema", chat, "Schema", `,"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":"true","schema":{"type":"object"}}}`},
		{"chat-schema-misplaced", chat, "Schema", `,"response_format":{"type":"json_schema","schema":{"type":"object"}}`},
		{"chat-overflow", chat, "Long", usage},
		{"chat-broken-stream", chat, "Broken", stream},
		{"v0-chat", v0Chat, "Hello", ""},
		{"v0-chat-stream", v0Chat, "Hello", stream},
		{"v0-chat-usage", v0Chat, "Hello", usage},
		{"v0-chat-stop", v0Chat, "Hello", `,"stop":["there"]`},
		{"v0-chat-draft", v0Chat, "Hello", `,"draft_model":"tinydraft"`},
		{"v0-chat-overflow", v0Chat, "Long", ""},
		{"v0-chat-broken-stream", v0Chat, "Broken", stream},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(s.sent())
			request := `{"model":"tinychat","messages":[{"role":"user","content":"` + tt.user + `"}]` + tt.more + `}`
			got := s.do("POST", tt.path, request)
			var text strings.Builder
			fmt.Fprintf(&text, "POST %s\n%s\n\n", tt.path, request)
			sent := s.sent()[before:]
			slices.Sort(sent) // several choices are asked for at a time
			for _, body := range sent {
				fmt.Fprintf(&text, "sent: %s\n\n", body)
			}
			fmt.Fprintf(&text, "%d %s\n%s\n", got.status, got.header.Get("Content-Type"), maskedChat(got.body))
			golden(t, tt.name, text.String())
		})
	}
}

// withoutStates makes the fake engine say what its script says is cached.
func withoutStates(_ *endpoint.Config, settings *node.Settings) { settings.Warm.Off = true }

// idSlot is the slot that a request got, which depends on what was asked before.
var idSlot = regexp.MustCompile(`,"id_slot":\d+`)

// sent is what the engines were sent, in order, without the slots.
func (s *server) sent() (all []string) {
	for _, ev := range s.fake.Events() {
		if isAsked(ev) {
			all = append(all, idSlot.ReplaceAllString(ev.Body, ""))
		}
	}
	return all
}
