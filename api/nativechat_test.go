package api

import (
	"database/sql"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/store"
)

func TestNative_OneBody(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		Answer: fakeengine.Answer{Reasoning: "The user greets me.", Text: "Hello there."}, PromptTokens: 12, CachedTokens: 3,
	}}})
	got := s.native("hi", "")
	body := gjson.Parse(got.body)
	for path, want := range map[string]string{
		"model_instance_id":             "lmcaddy/tinychat",
		"output":                        `[{"type":"reasoning","content":"The user greets me."},{"type":"message","content":"Hello there."}]`,
		"stats.input_tokens":            "12",
		"stats.total_output_tokens":     "6",
		"stats.reasoning_output_tokens": "4",
	} {
		if got := body.Get(path).String(); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if got.status != 200 || len(body.Get("response_id").Str) != len("resp_")+48 || body.Get("stats.model_load_time_seconds").Num <= 0 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if again := gjson.Parse(s.native("hi", "").body); again.Get("stats.model_load_time_seconds").Exists() {
		t.Errorf("loaded before: %s", again)
	}
}

func TestNative_Errors(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, withPresets)
	withOthers(s)
	const unknown = `,"previous_response_id":"resp_` + "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a" + `"`
	for name, tt := range map[string]struct {
		body              string
		status            int
		kind, code, param string
	}{
		"no model":            {`{"input":"hi"}`, 400, "invalid_request", "missing_required_parameter", "model"},
		"unknown model":       {`{"model":"nope","input":"hi"}`, 404, "model_not_found", "model_not_found", "model"},
		"a model for vectors": {`{"model":"tinyembed","input":"hi"}`, 400, "invalid_request", "", "model"},
		"no input":            {`{"model":"tinychat"}`, 400, "invalid_request", "missing_required_parameter", "input"},
		"unknown response":    {`{"model":"tinychat","input":"hi"` + unknown + `}`, 404, "invalid_request", "previous_response_not_found", "previous_response_id"},
		"no response":         {`{"model":"tinychat","input":"hi","previous_response_id":"x"}`, 400, "invalid_request", "invalid_value", "previous_response_id"},
		"reasoning":           {`{"model":"tinychat","input":"hi","reasoning":"low"}`, 400, "invalid_request", "invalid_value", "reasoning"},
		"integrations":        {`{"model":"tinychat","input":"hi","integrations":["mcp/x"]}`, 403, "invalid_request", "gate_closed", "integrations[0]"},
		"unknown preset":      {`{"model":"tinychat","input":"hi","preset":"x"}`, 400, "invalid_request", "unknown_preset", "preset"},
		"a preset too hot":    {`{"model":"tinychat","input":"hi","preset":"bold"}`, 400, "invalid_request", "invalid_value", "temperature"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stream := range []string{"", `,"stream":true`} { // told by a status either way
				got := s.do("POST", "/api/v1/chat", strings.TrimSuffix(tt.body, "}")+stream+"}")
				e := gjson.Get(got.body, "error")
				if got.status != tt.status || e.Get("type").Str != tt.kind || tt.code != "" && e.Get("code").Str != tt.code || e.Get("param").Str != tt.param {
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
	t.Cleanup(func() {
		if n := s.requests(); n > 0 {
			t.Errorf("the engine was asked %d times", n)
		}
	})
}

// TestNative_TheEnginesRefusalsAreAboutTheClientsFields: those that it knows by other names.
func TestNative_TheEnginesRefusalsAreAboutTheClientsFields(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"Field 'max_tokens': Value must be less": "max_output_tokens",
		"Failed to load image or audio file":     "input",
		"Field 'top_k': Value must be less":      "top_k",
	} {
		s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Status: 400, Body: `{"error":{"code":400,"message":"` + message + `","type":"invalid_request_error"}}`}}})
		got := s.native("hi", "")
		if e := gjson.Get(got.body, "error"); got.status != 400 || e.Get("param").Str != want || e.Get("type").Str != "invalid_request" {
			t.Errorf("%s: %d %s", message, got.status, got.body)
		}
	}
}

// stored is how many turns there are; they are removed.
func (s *server) stored() int {
	s.t.Helper()
	n, err := s.node.Stores.Get().Prune(s.t.Context(), store.Bounds{Age: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// conversations is the number of stored conversations.
func (s *server) conversations() int {
	s.t.Helper()
	found, err := s.node.Stores.Get().Search(s.t.Context(), "", store.Filter{}, store.Position{}, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	return len(found)
}

func TestNative_ConversationsGoOn(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	ask := func(input, previous, more string) string {
		t.Helper()
		if previous != "" {
			more += `,"previous_response_id":"` + previous + `"`
		}
		got := s.native(input, more)
		if got.status != 200 || said(gjson.Parse(got.body)) != healthy {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return gjson.Get(got.body, "response_id").Str
	}
	one := ask("one", "", `,"system_prompt":"Be brief."`)
	two := ask("two", one, "")
	ask("branch", one, `,"system_prompt":"Be long."`)
	ask("three", two, `,"system_prompt":""`)
	if id := ask("unseen", two, `,"store":false`); id != "" {
		t.Errorf("what isn't stored has the id %s", id)
	}
	const brief, first = `{"role":"system","content":"Be brief."},`, `{"role":"user","content":"one"}`
	const answered = `,{"role":"assistant","content":"` + healthy + `"},`
	want := []string{
		"[" + brief + first + "]",
		"[" + brief + first + answered + `{"role":"user","content":"two"}]`,
		`[{"role":"system","content":"Be long."},` + first + answered + `{"role":"user","content":"branch"}]`,
		"[" + first + answered + `{"role":"user","content":"two"}` + answered + `{"role":"user","content":"three"}]`,
		"[" + brief + first + answered + `{"role":"user","content":"two"}` + answered + `{"role":"user","content":"unseen"}]`,
	}
	var messages []string
	for _, body := range s.sent() {
		messages = append(messages, gjson.Get(body, "messages").Raw)
	}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("what the engine was sent (-want +got):\n%s", diff)
	}
	if n := s.stored(); n != 4 {
		t.Errorf("%d turns are stored", n)
	}
}

func TestNative_TheEngineIsSentTheRequestInItsWords(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, withPresets)
	s.native("hi", `,"temperature":0.5,"top_k":3,"max_output_tokens":7,"reasoning":"off","preset":"careful","ttl":60,"x_unknown":1`)
	want := `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}],"temperature":0.5,"top_k":3,"max_tokens":7,` +
		`"chat_template_kwargs":{"enable_thinking":false},"stream":true,"return_progress":true,"stream_options":{"include_usage":true},"timings_per_token":true,"id_slot":0}`
	if diff := cmp.Diff(want, s.fake.Wait(t, isAsked).Body); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNative_APresetBeginsAConversation(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, withPresets)
	first := gjson.Get(s.native("hi", `,"system_prompt":"Mine."`).body, "response_id").Str
	s.native("more", `,"preset":"careful","previous_response_id":"`+first+`"`)
	s.native("other", `,"preset":"careful","system_prompt":"Mine, too."`)
	for i, want := range []string{"Mine.", "Mine.", "Mine, too."} {
		if got := gjson.Get(s.sent()[i], "messages.0.content").Str; got != want {
			t.Errorf("request %d has the system prompt %q, want %q", i, got, want)
		}
	}
}

func TestNative_TheContextIsAsLongAsTheFirstRequestSays(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, length := range []string{"1000", "3000"} {
		if got := s.native("hi", `,"context_length":`+length); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	instances := gjson.Get(s.do("GET", "/api/v1/models", "").body, "models.0.loaded_instances")
	if got := instances.Get("#.config.context_length").Raw; got != "[1024]" {
		t.Errorf("%s", instances.Raw)
	}
}

func TestNative_HowAnAnswerEndedIsStored(t *testing.T) {
	t.Parallel()
	s := serve(t, noSecond(
		fakeengine.Rule{Contains: "die", Cues: []fakeengine.Cue{{After: 2, Gate: "seen", Do: fakeengine.Crash}}},
		fakeengine.Rule{Contains: "nothing", Answer: fakeengine.Answer{Pieces: []string{}}},
	))
	for _, tt := range []struct{ input, more, status, output string }{
		{"hi", "", "completed", `[{"type":"message","content":"` + healthy + `"}]`},
		{"hi", `,"max_output_tokens":2`, "incomplete", `[{"type":"message","content":"Hello from"}]`},
		{"nothing", "", "completed", `[]`},
		{"die", `,"temperature":1`, "failed", `[{"type":"message","content":"Hello from"}]`},
	} {
		st := s.nativeStream(tt.input, tt.more)
		if tt.status == "failed" { // the engine ends when the client has read what it said
			st.until("message.delta")
			st.until("message.delta")
			s.fake.Release("seen")
		}
		_, _, result := st.rest()
		id := result.Get("response_id").Str
		got := s.do("GET", "/api/v1/responses/"+id, "")
		if got.status != 200 || gjson.Get(got.body, "status").Str != tt.status || gjson.Get(got.body, "output").Raw != tt.output || result.Get("output").Raw != tt.output {
			t.Errorf("%s%s: %s is stored as %d %s", tt.input, tt.more, result.Raw, got.status, got.body)
		}
	}
}

func TestNative_WhatCantBeStoredIsNoAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	// The store tidies up when it opens, under a lock that this connection waits for.
	db, err := sql.Open("sqlite", "file:"+filepath.Join(string(s.node.Home()), "lmcaddy.db")+"?_pragma=busy_timeout(120000)")
	if err == nil {
		_, err = db.ExecContext(t.Context(), "ALTER TABLE turns RENAME TO elsewhere")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := s.native("hi", ""); got.status != 500 || got.code() != text.CodeNotStored || strings.Contains(got.body, healthy) {
		t.Errorf("%d %s", got.status, got.body)
	}
	order, fault, result := s.nativeStream("hi", "").rest()
	wantOrder(t, order, "chat.start"+nativePrompt+nativeMessage+" error chat.end")
	if fault.Get("code").Str != text.CodeNotStored || result.Get("response_id").Exists() || said(result) != healthy {
		t.Errorf("%s, %s", fault.Raw, result.Raw)
	}
	if got := s.native("hi", `,"store":false`); got.status != 200 || said(gjson.Parse(got.body)) != healthy {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestNative_ImagesNeedAModelThatTakesThem(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	withOthers(s)
	const url = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAADklEQVR4nGL6DwgAAP//AQUBAlrdOc0AAAAASUVORK5CYII="
	image := `"input":[{"type":"text","content":"Say:"},{"type":"image","data_url":"` + url + `"}]`
	first := s.do("POST", "/api/v1/chat", `{"model":"tinyvision",`+image+`}`)
	if first.status != 200 || !strings.Contains(s.sent()[0], `{"type":"image_url","image_url":{"url":"`+url+`"}}`) {
		t.Fatalf("%d %s, sent %s", first.status, first.body, s.sent()[0])
	}
	id := gjson.Get(first.body, "response_id").Str
	goOn := `,"previous_response_id":"` + id + `"`
	for _, body := range []string{`{"model":"tinychat",` + image + `}`, `{"model":"tinychat","input":"hi"` + goOn + `}`} {
		if got := s.do("POST", "/api/v1/chat", body); got.status != 400 || got.code() != "unsupported_content" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if got := s.do("POST", "/api/v1/chat", `{"model":"tinyvision","input":"hi"`+goOn+`}`); got.status != 200 || !strings.Contains(s.sent()[1], url) {
		t.Errorf("%d %s, sent %s", got.status, got.body, s.sent()[1])
	}
	if got := gjson.Get(s.do("GET", "/api/v1/responses/"+id, "").body, "input").Raw; got != `[{"type":"message","content":"Say:"},{"type":"image","data_url":"`+url+`"}]` {
		t.Errorf("stored: %s", got)
	}
}

func TestResponses_AreReadAndDeleted(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Text: "Yes."}, PromptTokens: 20, CachedTokens: 15}}})
	first := gjson.Get(s.native("one", `,"system_prompt":"S"`).body, "response_id").Str
	second := gjson.Get(s.native("two", `,"previous_response_id":"`+first+`"`).body, "response_id").Str
	path := "/api/v1/responses/"
	got := gjson.Parse(s.do("GET", path+second, "").body)
	want := `{"response_id":"` + second + `","previous_response_id":"` + first + `","model":"lmcaddy/tinychat","status":"completed","created_at":` + got.Get("created_at").Raw +
		`,"input":[{"type":"message","content":"two"}],"output":[{"type":"message","content":"Yes."}],` +
		`"usage":{"input_tokens":20,"cached_input_tokens":15,"output_tokens":1,"reasoning_output_tokens":0,"context_length":8192}}`
	took := regexp.MustCompile(`,"(tokens_per_second|time_to_first_token_seconds)":[^,}]+`)
	if diff := cmp.Diff(want, took.ReplaceAllString(got.Raw, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if system := gjson.Get(s.do("GET", path+first, "").body, "system_prompt").Str; system != "S" {
		t.Errorf("the system prompt is %q", system)
	}
	if got := s.do("DELETE", path+first, ""); got.body != `{"response_id":"`+first+`","deleted":true}` {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, got := range []answer{s.do("GET", path+first, ""), s.do("DELETE", path+first, ""), s.do("GET", path+"nope", "")} {
		if got.status != 404 || got.code() != "response_not_found" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if got := s.native("three", `,"previous_response_id":"`+first+`"`); got.status != 404 || got.code() != "previous_response_not_found" {
		t.Errorf("a deleted one: %d %s", got.status, got.body)
	}
	if got := s.native("three", `,"previous_response_id":"`+second+`"`); got.status != 200 || !strings.Contains(s.sent()[2], `"one"`) {
		t.Errorf("what continues a deleted one: %d %s", got.status, got.body)
	}
	if got := s.do("POST", path+first, "{}"); got.status != 405 || got.header.Get("Allow") != "DELETE, GET, HEAD" {
		t.Errorf("%d %v", got.status, got.header)
	}
}

// TestNative_ATurnIsOnDiskBeforeItsEndIsSeen: another process could read it at once.
func TestNative_ATurnIsOnDiskBeforeItsEndIsSeen(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	other, err := store.Open(t.Context(), store.Options{Path: filepath.Join(string(s.node.Home()), "lmcaddy.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 20 {
		end := s.nativeStream("hi", "").until("chat.end")
		if _, err := other.Get(t.Context(), "", end.data.Get("result.response_id").Str); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNative_AnAnswerMayBeBegun: an answer goes on from what the request says of it, which is stored as a part of it.
func TestNative_AnAnswerMayBeBegun(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	begun := `,"prefill":"I am: ","reasoning":"off"`
	whole := s.native("Who are you?", begun)
	if got := gjson.Get(whole.body, "output"); got.Get("#").Int() != 1 || got.Get("0.content").Str != "I am: "+healthy {
		t.Errorf("%s", whole.body)
	}
	if sent := s.fake.Wait(t, isAsked).Body; gjson.Get(sent, "messages.1.role").Str != "assistant" || gjson.Get(sent, "messages.1.content").Str != "I am: " {
		t.Errorf("%s", sent)
	}
	_, fault, result := s.nativeStream("Who are you?", begun).rest()
	if said(result) != "I am: "+healthy || fault.Exists() {
		t.Errorf("%s %s", fault, result)
	}
	if got := s.do("GET", "/api/v1/responses/"+result.Get("response_id").Str, ""); gjson.Get(got.body, "output.0.content").Str != "I am: "+healthy || gjson.Get(got.body, "usage.context_length").Int() == 0 {
		t.Errorf("%s", got.body)
	}
	if got := s.native("hi", `,"prefill":1`); got.code() != "invalid_type" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.native("hi", `,"max_output_tokens":1`); gjson.Get(got.body, "status").Str != "incomplete" {
		t.Errorf("%s", got.body)
	}
}
