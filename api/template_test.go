package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

// renders scripts an engine whose template has a switch of another name than its text lets one think, and thinks only if asked to.
func renders() *fakeengine.Script {
	const path = "/apply-template"
	shown := func(contains, prompt string) fakeengine.Rule {
		return fakeengine.Rule{Path: path, Contains: contains, Status: 200, Body: `{"prompt":"` + prompt + `"}`}
	}
	return &fakeengine.Script{Rules: []fakeengine.Rule{
		shown(`"thinking":true`, "Question1, think"), shown(`[{"role":"user","content":"Question1"}]`, "Question1"), {},
	}}
}

// options returns what the native API lists of the model's settings for its thinking.
func (s *server) options() string {
	s.t.Helper()
	listed := gjson.Get(s.do("GET", "/api/v1/models", "").body, `models.#(key=="lmcaddy/tinychat").capabilities.reasoning`)
	return listed.Get("allowed_options").Raw + " " + listed.Get("default").Str
}

// TestTemplate_AGuessRefusesNothing: what a model offers is known once it is loaded, and then the request that has loaded it is
// refused, if it has to be.
func TestTemplate_AGuessRefusesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, renders())
	if got := s.options(); got != `["off","on"] on` {
		t.Errorf("before the first load: %s", got)
	}
	if a := s.native("hi", `,"reasoning":"extreme"`); a.status != 400 || len(s.node.Instances()) != 0 {
		t.Errorf("%d: %s; no model offers that", a.status, a.body)
	}
	for _, stream := range []string{"", `,"stream":true`} {
		a := s.native("hi", `,"reasoning":"low"`+stream)
		e := gjson.Get(a.body, "error")
		if a.status != 400 || e.Get("code").Str != "invalid_value" || e.Get("param").Str != "reasoning" || !strings.Contains(e.Get("message").Str, "Supported settings: 'off', 'on'.") {
			t.Errorf("%d: %s", a.status, a.body)
		}
	}
	if n := len(s.node.Instances()); n != 1 {
		t.Errorf("%d instances are loaded, want 1", n)
	}
	if got := s.options(); got != `["off","on"] off` {
		t.Errorf("after it: %s", got)
	}
	if slices.ContainsFunc(s.fake.Events(), isAsked) {
		t.Error("the engine was asked")
	}
}

// TestTemplate_EveryDialectSpeaksItsWords: the first request, too, which was parsed before the template was known.
func TestTemplate_EveryDialectSpeaksItsWords(t *testing.T) {
	t.Parallel()
	const messages = `"model":"tinychat","messages":[{"role":"user","content":"hi"}]`
	for name, tt := range map[string]struct{ path, off, on string }{
		"chat completions": {"/v1/chat/completions", messages + `,"reasoning_effort":"none"`, messages + `,"reasoning_effort":"high"`},
		"responses":        {"/v1/responses", `"model":"tinychat","input":"hi","reasoning":{"effort":"none"}`, `"model":"tinychat","input":"hi","reasoning":{"effort":"low"}`},
		"messages": {
			"/v1/messages", messages + `,"max_tokens":2000`, messages + `,"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024}`,
		},
		"native": {"/api/v1/chat", `"model":"tinychat","input":"hi","reasoning":"off"`, `"model":"tinychat","input":"hi","reasoning":"on"`},
		"Ollama": {"/api/chat", messages + `,"think":false`, messages + `,"think":true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, first := range []bool{false, true} {
				s := serve(t, renders())
				for _, on := range []bool{first, !first} {
					body, want := tt.off, `{"thinking":false}`
					if on {
						body, want = tt.on, `{"thinking":true}`
					}
					if a := s.do("POST", tt.path, "{"+body+"}"); a.status != 200 {
						t.Fatalf("%d: %s", a.status, a.body)
					}
					asked := slices.DeleteFunc(s.fake.Events(), func(e fakeengine.Event) bool { return !isAsked(e) })
					sent := gjson.Parse(asked[len(asked)-1].Body)
					if got := sent.Get("chat_template_kwargs").Raw; got != want || sent.Get("reasoning_effort").Exists() {
						t.Errorf("on: %v, the engine was sent %s", on, sent.Raw)
					}
				}
			}
		})
	}
}

// TestTemplate_ThatCannotBeRendered: an engine that can't show prompts works as before.
func TestTemplate_ThatCannotBeRendered(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Path: "/apply-template", Status: 404}, {}}})
	if a := s.native("hi", `,"reasoning":"low"`); a.status != 200 {
		t.Errorf("%d: %s", a.status, a.body)
	}
	if got := gjson.Get(s.fake.Wait(t, isAsked).Body, "reasoning_effort").Str; got != "low" {
		t.Errorf("the engine was sent the effort %q", got)
	}
	if got := s.options(); got != `["off","on"] on` {
		t.Errorf("it lists %s", got)
	}
}

// leavesThoughts scripts an engine that doesn't find the thoughts that the template begins, but leaves them in the text.
func leavesThoughts() *fakeengine.Script {
	script := renders()
	script.Rules[0].Body = `{"prompt":"Question1<think>"}`
	script.Rules = append(script.Rules[:2:2],
		fakeengine.Rule{Contains: "root ::=", Answer: fakeengine.Answer{Text: "a</think>b"}},
		fakeengine.Rule{Answer: fakeengine.Answer{Text: "Hm, so.</think> Yes, sir."}})
	return script
}

// TestTemplate_ThoughtsThatTheEngineLeaves are thoughts in every dialect, streamed or not, from the first request on; without thinking, the answer is as it comes.
func TestTemplate_ThoughtsThatTheEngineLeaves(t *testing.T) {
	t.Parallel()
	const messages = `"model":"tinychat","messages":[{"role":"user","content":"hi"}]`
	for name, tt := range map[string]struct{ path, on, off, thought, text, streamed string }{
		"chat completions": {"/v1/chat/completions", messages + `,"reasoning_effort":"high"`, messages + `,"reasoning_effort":"none"`, "choices.0.message.reasoning", "choices.0.message.content", `"reasoning":"Hm,`},
		"its own switch":   {"/v1/chat/completions", messages + `,"chat_template_kwargs":{"thinking":true}`, messages, "choices.0.message.reasoning", "choices.0.message.content", `"reasoning":"Hm,`},
		"responses": {
			"/v1/responses", `"model":"tinychat","input":"hi","reasoning":{"effort":"low"}`, `"model":"tinychat","input":"hi","reasoning":{"effort":"none"}`,
			`output.#(type=="reasoning").content.0.text`, `output.#(type=="message").content.0.text`, "response.reasoning_text.delta",
		},
		"messages": {
			"/v1/messages", messages + `,"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024}`, messages + `,"max_tokens":2000`,
			`content.#(type=="thinking").thinking`, `content.#(type=="text").text`, "thinking_delta",
		},
		"native": {
			"/api/v1/chat", `"model":"tinychat","input":"hi","reasoning":"on"`, `"model":"tinychat","input":"hi","reasoning":"off"`,
			`output.#(type=="reasoning").content`, `output.#(type=="message").content`, "reasoning.delta",
		},
		"Ollama": {"/api/chat", messages + `,"think":true`, messages + `,"think":false`, "message.thinking", "message.content", `"thinking":"Hm,`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, leavesThoughts())
			whole := s.do("POST", tt.path, "{"+tt.on+`,"stream":false}`)
			if thought, text := gjson.Get(whole.body, tt.thought).Str, gjson.Get(whole.body, tt.text).Str; thought != "Hm, so." || text != "Yes, sir." {
				t.Errorf("in one piece, the thought is %q and the text %q: %s", thought, text, whole.body)
			}
			stream := s.do("POST", tt.path, "{"+tt.on+`,"stream":true}`)
			if !strings.Contains(stream.body, tt.streamed) || strings.Contains(stream.body, "/think") || !strings.Contains(stream.body, "Yes,") {
				t.Errorf("streamed: %s", stream.body)
			}
			if off := s.do("POST", tt.path, "{"+tt.off+`,"stream":false}`); gjson.Get(off.body, tt.text).Str != "Hm, so.</think> Yes, sir." {
				t.Errorf("without thinking: %s", off.body)
			}
		})
	}
}
