package api

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

const messagesPath = "/v1/messages"

// messages asks the shipped model one thing.
func (s *server) messages(more string) answer {
	s.t.Helper()
	return s.do("POST", messagesPath, `{"model":"tinychat","max_tokens":100,"messages":[{"role":"user","content":"hi"}]`+more+`}`)
}

var messagesVolatile = regexp.MustCompile(`(msg|req)_[a-z2-7]{26}`)

// TestGolden_Messages keeps a request, what its engine is sent, and the answer, for what a Messages request can ask for.
func TestGolden_Messages(t *testing.T) {
	t.Parallel()
	weather := []fakeengine.ToolCall{{Name: "get_weather", Arguments: `{"city":"Oslo"}`, ID: "a"}, {Name: "get_weather", Arguments: `{"city":"Paris"}`, ID: "b"}}
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: "Weather", PromptTokens: 20, Answer: fakeengine.Answer{Reasoning: "I look.", Pieces: []string{"Let me see."}, Calls: weather}, AfterTools: []fakeengine.Answer{{Text: "It rains."}}},
		{Contains: "Long", PromptTokens: 4000},
		{Contains: "Broken", PromptTokens: 9, Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Fault}}},
		{PromptTokens: 9, CachedTokens: 4, Answer: fakeengine.Answer{Reasoning: "A greeting.", Text: "Hello there."}},
	}}, shortContext, withPresets, withoutStates)
	const stream, thinks = `,"stream":true`, `,"thinking":{"type":"adaptive"}`
	const tools = `,"tools":[{"name":"get_weather","description":"Tells","input_schema":{"type":"object"}}]`
	const result = `[{"role":"user","content":"Weather"},{"role":"assistant","content":[{"type":"thinking","thinking":"I look.","signature":"x"},{"type":"tool_use","id":"a","name":"get_weather","input":{"city":"Oslo"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"rain"}]}]`
	for _, tt := range []struct{ name, path, messages, more string }{
		{"text", messagesPath, "Hello", ""},
		{"text-stream", messagesPath + "?beta=true", "Hello", stream},
		{"thinking", messagesPath, "Hello", thinks},
		{"thinking-stream", messagesPath, "Hello", thinks + stream},
		{"thinking-omitted-stream", messagesPath, "Hello", stream + `,"thinking":{"type":"adaptive","display":"omitted"}`},
		{"limit", messagesPath, "Hello", `,"max_tokens":1`},
		{"stop", messagesPath, "Hello", `,"stop_sequences":["there"]`},
		{"stop-stream", messagesPath, "Hello", stream + `,"stop_sequences":["there"]`},
		{"preset", messagesPath, "Hello", `,"preset":"careful"`},
		{"tools", messagesPath, "Weather", tools + thinks},
		{"tools-stream", messagesPath, "Weather", tools + thinks + stream},
		{"tools-single-stream", messagesPath, "Weather", tools + stream + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`},
		{"tools-cut", messagesPath, "Weather", tools + `,"max_tokens":3`},
		{"tools-cut-stream", messagesPath, "Weather", tools + stream + `,"max_tokens":3`},
		{"tools-result", messagesPath, result, tools + thinks},
		{"count", messagesPath + "/count_tokens", "How many are these?", tools},
		{"overflow-stream", messagesPath, "Long", stream},
		{"broken-stream", messagesPath, "Broken", stream},
		{"broken", messagesPath, "Broken", ""},
		{"refused", messagesPath, `[{"role":"user","content":[{"type":"video"}]}]`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			messages := tt.messages
			if messages[0] != '[' {
				messages = `[{"role":"user","content":"` + messages + `"}]`
			}
			limit := `,"max_tokens":100`
			if strings.Contains(tt.more, "max_tokens") || strings.Contains(tt.path, "count") {
				limit = ""
			}
			before := len(s.sent())
			request := `{"model":"tinychat","messages":` + messages + limit + tt.more + `}`
			got := s.do("POST", tt.path, request)
			var text strings.Builder
			fmt.Fprintf(&text, "POST %s\n%s\n\n", tt.path, request)
			for _, body := range s.sent()[before:] {
				fmt.Fprintf(&text, "sent: %s\n\n", body)
			}
			fmt.Fprintf(&text, "%d %s\n%s\n", got.status, got.header.Get("Content-Type"), messagesVolatile.ReplaceAllString(got.body, "${1}_…"))
			golden(t, "messages-"+tt.name, text.String())
		})
	}
}

func TestMessages_IDs(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	good, bad := s.messages(""), s.do("POST", messagesPath, `{}`, "X-Request-Id", "mine")
	if id := good.header.Get("Request-Id"); id == "" || id != good.header.Get("X-Request-Id") || !strings.HasPrefix(gjson.Get(good.body, "id").Str, "msg_") {
		t.Errorf("%q %s", id, good.body)
	}
	if bad.status != 400 || bad.header.Get("Request-Id") != "mine" || gjson.Get(bad.body, "request_id").Str != "mine" {
		t.Errorf("%d %v %s", bad.status, bad.header, bad.body)
	}
}

// TestMessages_WhatTheClientHasNotSeenIsAskedAgain: a stream that has only begun is continued by the next engine.
func TestMessages_WhatTheClientHasNotSeenIsAskedAgain(t *testing.T) {
	t.Parallel()
	atOnce := fakeengine.Rule{Path: "/v1/chat/completions", Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}
	for name, tt := range map[string]struct {
		rule fakeengine.Rule
		more string
	}{
		"a body":                     {atOnce, ""},
		"a body, amid the answer":    {fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}, ""},
		"a stream":                   {atOnce, `,"stream":true`},
		"a stream that was told of":  {fakeengine.Rule{PromptTokens: 3000, PromptDelay: time.Millisecond, Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}, `,"stream":true`},
		"a stream, before its words": {fakeengine.Rule{Answer: fakeengine.Answer{Pieces: []string{"\n", "Hi"}}, Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Crash}}}, `,"stream":true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, firstProcess(tt.rule))
			got := s.messages(tt.more)
			text := gjson.Get(got.body, "content.0.text").Str
			if tt.more != "" {
				text = textOf(got.body)
			}
			if got.status != 200 || text != healthy || strings.Count(got.body, "message_start") > 2 || s.requests() != 2 {
				t.Errorf("%d, %d requests, %s", got.status, s.requests(), got.body)
			}
		})
	}
}

// textOf is the text of a stream.
func textOf(stream string) (text string) {
	for _, ev := range eventsOf(stream) {
		text += gjson.Get(ev[1], "delta.text").Str
	}
	return text
}

// eventsOf are the names and the data of a stream's events; a comment has no data.
func eventsOf(stream string) (all [][2]string) {
	for frame := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, data, _ := strings.Cut(frame, "\ndata: ")
		all = append(all, [2]string{strings.TrimPrefix(name, "event: "), data})
	}
	return all
}

func TestMessages_WhatTheClientHasSeenEndsInAnError(t *testing.T) {
	t.Parallel()
	s := serve(t, noSecond(fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}))
	got := s.messages(`,"stream":true`)
	events := eventsOf(got.body)
	last := events[len(events)-1]
	if last[0] != "error" || gjson.Get(last[1], "type").Str != "error" || gjson.Get(last[1], "error.type").Str != "api_error" || s.requests() != 2 {
		t.Errorf("%d requests, %s", s.requests(), got.body)
	}
}

// TestMessages_SilencesAreBroken: by pings, also before the stream has begun.
func TestMessages_SilencesAreBroken(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}, Rules: []fakeengine.Rule{{Gate: "prompt"}}},
		func(c *endpoint.Config, _ *node.Settings) { c.KeepAlive = 10 * time.Millisecond })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+messagesPath,
		strings.NewReader(`{"model":"tinychat","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req) // the header comes with the first comment
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var stream strings.Builder
	readUntil := func(what string, times int) {
		t.Helper()
		p := make([]byte, 4096)
		for strings.Count(stream.String(), what) < times {
			n, err := resp.Body.Read(p)
			stream.Write(p[:n])
			if err != nil && strings.Count(stream.String(), what) < times {
				t.Fatalf("%v, no %q in %s", err, what, stream.String())
			}
		}
	}
	readUntil("event: ping\n", 2)
	if strings.Contains(stream.String(), "message_start") {
		t.Fatalf("it begins while the model is loaded: %s", stream.String())
	}
	s.fake.Release("load")
	readUntil("message_start", 2)
	readUntil("event: ping\n", strings.Count(stream.String(), "event: ping\n")+2)
	s.fake.Release("prompt")
	readUntil("message_stop", 2)
	var names []string
	for _, ev := range eventsOf(stream.String()) {
		if n := len(names); ev[0] != "ping" && (n == 0 || names[n-1] != ev[0]) {
			names = append(names, ev[0])
		}
	}
	want := []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMessages_Refusals: what a client acts on is the status, the type and, of a prompt that is too long, the words.
func TestMessages_Refusals(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Contains: "Long", PromptTokens: 9000}}}, shortContext)
	withOthers(s)
	const ask = `"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	for name, tt := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"no model":      {`{` + ask, 400, `"invalid_request_error","message":"\"model\" is required"`},
		"unknown model": {`{"model":"nope",` + ask, 404, `"not_found_error","message":"model: The model \"nope\" is not known.`},
		"no limit":      {`{"model":"tinychat","messages":[]}`, 400, `"message":"\"max_tokens\" is required"`},
		"embeddings":    {`{"model":"tinyembed",` + ask, 400, `"message":"model: The model lmcaddy/tinyembed generates no text`},
		"too long":      {`{"model":"tinychat","max_tokens":9,"messages":[{"role":"user","content":"Long"}]}`, 400, `"message":"prompt is too long: 9000 tokens \u003e 1024 maximum"`},
		"not JSON":      {`hi`, 400, `"invalid_request_error"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.do("POST", messagesPath, tt.body)
			want := strings.ReplaceAll(tt.want, `\u003e`, ">")
			if got.status != tt.status || !strings.Contains(got.body, want) {
				t.Errorf("%d %s, want %s", got.status, got.body, want)
			}
		})
	}
}

func TestMessages_ModelsInPages(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.ListAll = true })
	withOthers(s)
	ids := func(query string) string {
		t.Helper()
		got := s.do("GET", "/v1/models?"+query, "", "Anthropic-Version", "2023-06-01")
		if got.status != 200 {
			return fmt.Sprint(got.status, " ", gjson.Get(got.body, "error.type").Str)
		}
		page := gjson.Parse(got.body)
		names := ""
		for _, m := range page.Get("data").Array() {
			names += strings.TrimPrefix(m.Get("id").Str, "lmcaddy/tiny") + " "
			if m.Get("type").Str != "model" || m.Get("display_name").Str == "" || m.Get("max_input_tokens").Int() == 0 {
				t.Errorf("%s", m.Raw)
			}
			if _, err := time.Parse(time.RFC3339, m.Get("created_at").Str); err != nil {
				t.Error(err)
			}
		}
		if names != "" && (page.Get("first_id").Str != page.Get("data.0.id").Str || page.Get("last_id").Str != page.Get("data|@reverse|0.id").Str) {
			t.Errorf("%s", got.body)
		}
		return fmt.Sprint(names, page.Get("has_more").Bool())
	}
	for query, want := range map[string]string{
		"":                                     "chat embed rerank vision false",
		"limit=3":                              "chat embed rerank true",
		"limit=3&after_id=lmcaddy/tinychat":    "embed rerank vision false",
		"limit=1&after_id=lmcaddy/tinychat":    "embed true",
		"before_id=lmcaddy/tinyrerank":         "chat embed false",
		"limit=1&before_id=lmcaddy/tinyrerank": "embed true",
		"after_id=nope":                        "false",
		"before_id=nope":                       "false",
		"limit=0":                              "400 invalid_request_error",
		"limit=x":                              "400 invalid_request_error",
		"after_id=a&before_id=b":               "400 invalid_request_error",
	} {
		if got := ids(query); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	one := s.do("GET", "/v1/models/tinychat", "", "Anthropic-Version", "2023-06-01")
	none := s.do("GET", "/v1/models/nope", "", "Anthropic-Version", "2023-06-01")
	if gjson.Get(one.body, "id").Str != "lmcaddy/tinychat" || none.status != 404 || gjson.Get(none.body, "error.type").Str != "not_found_error" {
		t.Errorf("%s\n%s", one.body, none.body)
	}
	if got := s.do("GET", "/v1/models", ""); gjson.Get(got.body, "object").Str != "list" {
		t.Errorf("without a version: %s", got.body)
	}
}
