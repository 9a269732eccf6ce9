package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/warm"
)

// withStates keeps the states of all prompts, however short, after a while.
func withStates(_ *endpoint.Config, settings *node.Settings) {
	inParallel(settings, 4)
	settings.Warm = node.WarmSettings{Settings: warm.Settings{Size: 1 << 30}, SaveAfter: time.Hour, MinTokens: 1}
}

// longText is a user's text that is far longer than any side question.
var longText = strings.Repeat("the red river runs to the sea and ", 200)

// slots returns the slots that the generating requests got so far.
func (s *server) slots() (all []int) {
	s.t.Helper()
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Serving {
			all = append(all, ev.Slot)
		}
	}
	return all
}

// Each dialect says what prompt a request has: a conversation goes on in its slot, although another request came in between.
func TestPrompts_AConversationKeepsItsSlot(t *testing.T) {
	t.Parallel()
	chat := func(messages string) string {
		return `{"model":"tinychat","max_tokens":9,"messages":[{"role":"user","content":"` + longText + `"}` + messages + `]}`
	}
	const more, other = `,{"role":"assistant","content":"yes"},{"role":"user","content":"go on"}`, `{"model":"tinychat","max_tokens":9,"messages":[{"role":"user","content":"a title"}]}`
	for name, tt := range map[string]struct {
		path         string
		first, other string
		next         string // %s: the id of the first
		nextPath     string
	}{
		"chat completions": {"/v1/chat/completions", chat(""), other, chat(more), ""},
		"choices":          {"/v1/chat/completions", chat(""), other, strings.Replace(chat(more), `9,`, `9,"n":1,`, 1), ""},
		"v0":               {"/api/v0/chat/completions", chat(""), other, chat(more), ""},
		"Messages":         {"/v1/messages", chat(""), other, chat(more), ""},
		"native chat": {
			"/api/v1/chat", `{"model":"tinychat","input":"` + longText + `"}`, `{"model":"tinychat","input":"a title","store":false}`,
			`{"model":"tinychat","input":"go on","previous_response_id":"%s"}`, "",
		},
		"Responses": {
			"/v1/responses", `{"model":"tinychat","input":"` + longText + `"}`, `{"model":"tinychat","input":"a title","store":false}`,
			`{"model":"tinychat","input":"go on","previous_response_id":"%s"}`, "",
		},
		"a summary": {
			"/v1/responses", `{"model":"tinychat","input":"` + longText + `"}`, `{"model":"tinychat","input":"a title","store":false}`,
			`{"model":"tinychat","previous_response_id":"%s"}`, "/v1/responses/compact",
		},
		"completions": {
			"/v1/completions", `{"model":"tinychat","prompt":"` + longText + `"}`, `{"model":"tinychat","prompt":"a title"}`,
			`{"model":"tinychat","prompt":"` + longText + ` and more"}`, "",
		},
		"several prompts": {
			"/v1/completions", `{"model":"tinychat","prompt":["` + longText + `"]}`, `{"model":"tinychat","prompt":["a title"]}`,
			`{"model":"tinychat","prompt":["` + longText + ` and more"]}`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil, withStates)
			ask := func(path, body string) string {
				t.Helper()
				got := s.do("POST", path, body)
				if got.status != 200 {
					t.Fatalf("%s: %d %s", path, got.status, got.body)
				}
				id := gjson.Get(got.body, "response_id").Str
				if id == "" {
					id = gjson.Get(got.body, "id").Str
				}
				return id
			}
			id := ask(tt.path, tt.first)
			ask(tt.path, tt.other)
			path := tt.path
			if tt.nextPath != "" {
				path = tt.nextPath
			}
			ask(path, strings.ReplaceAll(tt.next, "%s", id))
			if got := s.slots(); len(got) != 3 || got[0] != got[2] || got[0] == got[1] {
				t.Errorf("the slots are %d", got)
			}
		})
	}
}

// The rounds of a tool loop are one conversation, also when other requests come in between.
func TestPrompts_RoundsOfATool(t *testing.T) {
	t.Parallel()
	tools := serveTools(t)
	s := serve(t, callsThen("So.", fakeengine.ToolCall{Name: "echo", Arguments: echoArguments}), withMCP, withStates)
	if got := s.do("POST", "/api/v1/chat", `{"model":"tinychat","input":"`+longText+`"`+tools.ephemeral("")+`}`); got.status != 200 {
		t.Fatal(got)
	}
	if got := s.slots(); len(got) != 2 || got[0] != got[1] {
		t.Errorf("the slots are %d", got)
	}
}

// mark has a state made that is kept after all later ones.
func (s *server) mark() (conversation string) {
	s.t.Helper()
	return gjson.Get(s.respond(`"and now `+longText+`"`, "").body, "id").Str
}

// kept has the states saved, and returns the conversations of those that are kept, at least so many.
func (s *server) kept(mark string, least int) (conversations []string) {
	s.t.Helper()
	settings := s.node.Settings()
	settings.Warm.SaveAfter = time.Millisecond
	if err := s.node.Push(2, settings); err != nil {
		s.t.Fatal(err)
	}
	testkit.Eventually(s.t, "the states are kept", func() bool {
		conversations = nil
		for _, state := range s.node.Warm.List() {
			conversations = append(conversations, state.Conversation)
		}
		return slices.Contains(conversations, mark) && len(conversations) > least
	})
	return slices.DeleteFunc(conversations, func(id string) bool { return id == mark })
}

// What is kept belongs to its conversation, and nothing is kept of what a client doesn't want kept.
func TestPrompts_WhatIsKept(t *testing.T) {
	t.Parallel()
	const native, respond, chat, complete = "/api/v1/chat", "/v1/responses", "/v1/chat/completions", "/v1/completions"
	fields := map[string]string{native: `"input":"%s"`, respond: `"input":"%s"`, chat: `"messages":[{"role":"user","content":"%s"}]`, complete: `"prompt":"%s"`, "/v1/messages": `"max_tokens":9,"messages":[{"role":"user","content":"%s"}]`}
	for name, tt := range map[string]struct {
		path, more string
		kept       bool
		belongs    bool // to the conversation that begins with the response
	}{
		"native chat":                           {native, ``, true, true},
		"native chat that isn't stored":         {native, `,"store":false`, false, false},
		"a response":                            {respond, ``, true, true},
		"a streamed response":                   {respond, `,"stream":true`, true, true},
		"a response in the background":          {respond, `,"background":true`, true, true},
		"a response that isn't stored":          {respond, `,"store":false`, false, false},
		"a chat":                                {chat, ``, true, false},
		"a chat that is stored elsewhere":       {chat, `,"store":true`, true, false},
		"a chat that isn't":                     {chat, `,"store":false`, false, false},
		"a chat of which nothing is to be kept": {chat, `,"cache_prompt":false`, false, false},
		"a text":                                {complete, ``, true, false},
		"a text of which nothing is to be kept": {complete, `,"cache_prompt":false`, false, false},
		"a message":                             {"/v1/messages", ``, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, slowPrompts(), withStates)
			mark := s.mark()
			got := s.do("POST", tt.path, `{"model":"tinychat",`+fmt.Sprintf(fields[tt.path], longText)+tt.more+`}`)
			if got.status != 200 {
				t.Fatal(got)
			}
			at := strings.Index(got.body, "resp_")
			id := ""
			if at >= 0 {
				id, _, _ = strings.Cut(got.body[at:], `"`)
			}
			want := []string{}
			switch {
			case tt.belongs:
				want = []string{id}
			case tt.kept:
				want = []string{""}
			}
			if diff := cmp.Diff(want, s.kept(mark, len(want))); diff != "" {
				t.Errorf("the conversations of the states (-want +got):\n%s", diff)
			}
		})
	}
}

// A later turn belongs to the conversation that its first one has begun.
func TestPrompts_LaterTurns(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/api/v1/chat", "/v1/responses"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := serve(t, slowPrompts(), withStates)
			mark := s.mark()
			ask := func(more string) string {
				t.Helper()
				got := s.do("POST", path, `{"model":"tinychat","input":"`+longText+`"`+more+`}`)
				if got.status != 200 {
					t.Fatal(got)
				}
				id, _, _ := strings.Cut(got.body[strings.Index(got.body, "resp_"):], `"`)
				return id
			}
			first := ask("")
			second := ask(`,"previous_response_id":"` + first + `"`)
			ask(`,"previous_response_id":"` + second + `"`)
			kept := s.kept(mark, 1)
			if len(kept) == 0 || slices.ContainsFunc(kept, func(id string) bool { return id != first }) {
				t.Errorf("the conversations of the states are %q, want %q alone", kept, first)
			}
		})
	}
}
