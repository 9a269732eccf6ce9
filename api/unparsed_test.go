package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

// unparsedAfter is a rule for chats: the engine can't parse the answer after a number of tokens.
func unparsedAfter(tokens int, answer fakeengine.Answer) fakeengine.Rule {
	return fakeengine.Rule{Path: "/v1/chat/completions", Answer: answer, Cues: []fakeengine.Cue{{
		After: tokens, Do: fakeengine.Fault, Status: 500, Message: "The model produced output that does not match the expected peg-native format",
	}}}
}

// writes is a rule for texts.
func writes(text string) fakeengine.Rule {
	return fakeengine.Rule{Path: "/completion", Answer: fakeengine.Answer{Text: text}}
}

// TestUnparsed_TheClientGetsTheModelsWords in each dialect, streamed or not.
func TestUnparsed_TheClientGetsTheModelsWords(t *testing.T) {
	t.Parallel()
	const words = "<call:none>{\"a\": 1}"
	chat := `{"model":"tinychat","seed":1,"max_tokens":50,%s"messages":[{"role":"user","content":"Hello"}]}`
	input := `{"model":"tinychat","seed":1,%s"input":"Hello"}`
	for name, tt := range map[string]struct{ path, body, whole, deltas, finish, how string }{
		"openai":    {"/v1/chat/completions", chat, "choices.0.message.content", "choices.0.delta.content", "choices.0.finish_reason", "stop"},
		"anthropic": {"/v1/messages", strings.ReplaceAll(chat, `"seed":1`, `"temperature":0`), "content.0.text", "delta.text", "stop_reason", "end_turn"},
		"responses": {"/v1/responses", strings.ReplaceAll(input, `"seed":1,`, `"temperature":0,`), "output.0.content.0.text", `delta`, "status", "completed"},
		"native":    {"/api/v1/chat", strings.ReplaceAll(input, `"seed":1,`, `"temperature":0,`), "output.0.content", "content", "", ""},
		"ollama":    {"/api/chat", strings.ReplaceAll(chat, `"seed":1,"max_tokens":50,`, `"options":{"seed":1},`), "message.content", "message.content", "done_reason", "stop"},
	} {
		for _, after := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s, after %d tokens", name, after), func(t *testing.T) {
				t.Parallel()
				s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{unparsedAfter(after, fakeengine.Answer{Text: "<call:none> of something else"}), writes(words)}})
				whole := s.do("POST", tt.path, fmt.Sprintf(tt.body, `"stream":false,`))
				if got := gjson.Get(whole.body, tt.whole).Str; whole.status != 200 || got != words || tt.how != gjson.Get(whole.body, tt.finish).Str {
					t.Errorf("whole: %d %s", whole.status, whole.body)
				}
				streamed := s.do("POST", tt.path, fmt.Sprintf(tt.body, `"stream":true,`))
				text := ""
				for line := range strings.Lines(streamed.body) {
					frame := gjson.Parse(strings.TrimPrefix(line, "data: "))
					if kind := frame.Get("type").Str; kind == "" || strings.HasSuffix(kind, "text.delta") || strings.HasSuffix(kind, "block_delta") || kind == "message.delta" {
						text += frame.Get(tt.deltas).Str
					}
				}
				if streamed.status != 200 || text != words || strings.Contains(streamed.body, `"error":{`) || strings.Contains(streamed.body, "format_not_met") {
					t.Errorf("streamed: %q in %d %s", text, streamed.status, streamed.body)
				}
			})
		}
	}
}

// TestUnparsed_AnotherAnswerMayBeParsed where it isn't the same twice, and the client has seen nothing.
func TestUnparsed_AnotherAnswerMayBeParsed(t *testing.T) {
	t.Parallel()
	once := unparsedAfter(0, fakeengine.Answer{})
	once.Times = 1
	for _, more := range []string{"", `,"stream":true`} {
		s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{once, writes("unparsed")}})
		if got := s.chat(more); got.status != 200 || !strings.Contains(got.body, "engine.") || strings.Contains(got.body, "unparsed") {
			t.Errorf("%d %s", got.status, got.body)
		}
		s = serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{once, writes("unparsed")}})
		if got := s.chat(`,"seed":3` + more); got.status != 200 || !strings.Contains(got.body, "unparsed") {
			t.Errorf("with a seed: %d %s", got.status, got.body)
		}
	}
}

// TestUnparsed_NothingStreamed: the engine ends an answer well of which it has left everything out.
func TestUnparsed_NothingStreamed(t *testing.T) {
	t.Parallel()
	pieces := make([]string, 20) // empty ones
	for _, more := range []string{"", `,"stream":true`} {
		s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Path: "/v1/chat/completions", Answer: fakeengine.Answer{Pieces: pieces}}, writes("unparsed")}})
		if got := s.chat(`,"seed":3` + more); got.status != 200 || !strings.Contains(got.body, "unparsed") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// TestUnparsed_TheThinkingThatWasSeenIsNotRepeated before the words after it.
func TestUnparsed_TheThinkingThatWasSeenIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		unparsedAfter(2, fakeengine.Answer{Reasoning: "I think so.", Text: "x"}), writes("<mind>I think so.</mind> <call:none>"),
	}})
	got := s.chat(`,"seed":3,"stream":true`)
	var thinking, text string
	for line := range strings.Lines(got.body) {
		delta := gjson.Get(strings.TrimPrefix(line, "data: "), "choices.0.delta")
		thinking += delta.Get("reasoning").Str
		text += delta.Get("content").Str
	}
	if thinking != "I think" || text != " so.</mind> <call:none>" {
		t.Errorf("%q, then %q:\n%s", thinking, text, got.body)
	}
}

// TestUnparsed_FailsAgain: then the client gets an error that isn't about its request.
func TestUnparsed_FailsAgain(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]fakeengine.Rule{
		"the template": {Path: "/apply-template", Status: 500},
		"the words":    {Path: "/completion", Status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, more := range []string{"", `,"stream":true`} {
				s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{unparsedAfter(1, fakeengine.Answer{}), last}})
				got := s.chat(`,"seed":3` + more)
				if more == "" && got.status != 502 || !strings.Contains(got.body, `"error"`) || strings.Contains(got.body, "response_format") {
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
}
