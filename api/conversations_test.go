package api

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node/access"
)

const conversationsPath = "/api/v1/conversations"

// each returns the values at a path of the elements of an array.
func eachOf(body, array, path string) (all []string) {
	for _, v := range gjson.Get(body, array).Array() {
		all = append(all, v.Get(path).String())
	}
	return all
}

func TestConversations_OfBothDialects(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	first := gjson.Get(s.native("Who  are\\nyou?", `,"system_prompt":"Be brief."`).body, "response_id").Str
	other := gjson.Get(s.respond(`[{"role":"developer","content":"Be brief."},{"role":"user","content":"From an agent"}]`, "").body, "id").Str
	next := gjson.Get(s.native("And I?", `,"previous_response_id":"`+first+`"`).body, "response_id").Str

	list := s.do("GET", conversationsPath, "").body
	for path, want := range map[string][]string{
		"id": {first, other}, "title": {"Who are you?", "From an agent"}, "dialect": {"native", "responses"}, "turns": {"2", "1"},
		"last_response_id": {next, other}, "model": {"lmcaddy/tinychat", "lmcaddy/tinychat"}, "status": {"completed", "completed"}, "owner": {"", ""},
	} {
		if diff := cmp.Diff(want, eachOf(list, "conversations", path)); diff != "" {
			t.Errorf("%s: %s\n%s", path, diff, list)
		}
	}
	if next := gjson.Get(list, "next_cursor"); next.Type != gjson.Null || !next.Exists() {
		t.Errorf("a page follows: %s", list)
	}
	for id, want := range map[string]string{first: first, next: first, first[5:15]: first, first[:12]: first, other[5:20]: other} {
		got := s.do("GET", conversationsPath+"/"+id+"?responses=false", "")
		if got.status != 200 || gjson.Get(got.body, "id").Str != want || gjson.Get(got.body, "responses").Exists() {
			t.Errorf("%s: %d %s", id, got.status, got.body)
		}
	}
	whole := s.do("GET", conversationsPath+"/"+first, "").body
	for path, want := range map[string][]string{
		"response_id": {first, next}, "system_prompt": {"Be brief.", ""}, "input.0.content": {"Who  are\nyou?", "And I?"},
		"output.0.content": {healthy, healthy}, "previous_response_id": {"", first},
	} {
		if diff := cmp.Diff(want, eachOf(whole, "responses", path)); diff != "" {
			t.Errorf("%s: %s\n%s", path, diff, whole)
		}
	}
	agents := gjson.Get(s.do("GET", conversationsPath+"/"+other, "").body, "responses.0.input").Raw
	if want := `[{"type":"message","role":"developer","content":"Be brief."},{"type":"message","content":"From an agent"}]`; agents != want {
		t.Errorf("%s, want %s", agents, want)
	}
}

func TestConversations_Branches(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	after := func(input, previous string) string {
		return gjson.Get(s.native(input, `,"previous_response_id":"`+previous+`"`).body, "response_id").Str
	}
	first := gjson.Get(s.native("one", "").body, "response_id").Str
	left := after("two", first)
	leaf := after("three", left)
	right := after("two again", first)
	for query, want := range map[string][]string{
		"": {first, right}, "?branches=false": {first, right}, "?branches=true": {first, left, leaf, right}, "?branches=true&responses=false": nil,
	} {
		got := s.do("GET", conversationsPath+"/"+leaf+query, "")
		if diff := cmp.Diff(want, eachOf(got.body, "responses", "response_id")); got.status != 200 || diff != "" {
			t.Errorf("%q: %d %s\n%s", query, got.status, got.body, diff)
		}
	}
	if got := s.do("GET", conversationsPath+"/"+first+"?branches=maybe", ""); got.status != 400 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestConversations_Pages(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	var want []string
	for _, title := range []string{"one", "two", "three"} {
		s.native(title, "")
		want = append([]string{title}, want...)
	}
	var got []string
	cursor := ""
	for range want {
		page := s.do("GET", conversationsPath+"?limit=2&cursor="+url.QueryEscape(cursor), "").body
		got = append(got, eachOf(page, "conversations", "title")...)
		if cursor = gjson.Get(page, "next_cursor").Str; cursor == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "cursor=x": "cursor", "cursor=MTIz": "cursor"} {
		if got := s.do("GET", conversationsPath+"?"+query, ""); got.status != 400 || gjson.Get(got.body, "error.param").Str != param {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

func TestConversations_Deletion(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	first := gjson.Get(s.native("one", "").body, "response_id").Str
	second := gjson.Get(s.native("two", "").body, "response_id").Str
	branch := gjson.Get(s.native("two, still", `,"previous_response_id":"`+second+`"`).body, "response_id").Str
	s.respond(`"three"`, "")
	if got := s.do("DELETE", conversationsPath+"/"+second[5:15], ""); got.status != 200 || got.body != `{"deleted":1}` {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, id := range []string{second, branch} {
		for _, path := range []string{conversationsPath, "/api/v1/responses"} {
			if got := s.do("GET", path+"/"+id, ""); got.status != 404 {
				t.Errorf("%s/%s: %d %s", path, id, got.status, got.body)
			}
		}
	}
	if got := s.do("DELETE", conversationsPath+"/"+second, ""); got.status != 404 || got.code() != "conversation_not_found" {
		t.Errorf("again: %d %s", got.status, got.body)
	}
	for _, before := range []string{"", "?updated_before=yesterday", "?updated_before=9999-01-01T00:00:00Z"} {
		if got := s.do("DELETE", conversationsPath+before, ""); got.status != 400 || gjson.Get(got.body, "error.param").Str != "updated_before" {
			t.Errorf("%q: %d %s", before, got.status, got.body)
		}
	}
	for _, tt := range []struct{ before, want string }{{"2001-01-01T00:00:00Z", `{"deleted":0}`}, {"2100-01-01T00:00:00Z", `{"deleted":2}`}} {
		if got := s.do("DELETE", conversationsPath+"?updated_before="+tt.before, ""); got.body != tt.want {
			t.Errorf("before %s: %d %s", tt.before, got.status, got.body)
		}
	}
	if got := s.do("GET", "/api/v1/responses/"+first, ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAccess_ListsOfConversations(t *testing.T) {
	t.Parallel()
	open := serve(t, nil)
	s := guarded(open)
	ann, annsToken := s.token(access.Token{})
	bob, _ := s.token(access.Token{})
	admin, _ := s.token(access.Token{Scopes: access.Scopes})
	id := gjson.Get(s.with(ann, "POST", "/api/v1/chat", `{"model":"tinychat","input":"of Ann"}`).body, "response_id").Str
	path, ofAnn := conversationsPath+"/"+id, "?owner="+annsToken.ID
	for name, tt := range map[string]struct {
		got    answer
		status int
	}{
		"read":                   {s.with(bob, "GET", path, ""), 404},
		"delete":                 {s.with(bob, "DELETE", path, ""), 404},
		"read, as Ann's":         {s.with(bob, "GET", path+ofAnn, ""), 403},
		"list, as Ann's":         {s.with(bob, "GET", conversationsPath+ofAnn, ""), 403},
		"delete, as Ann's":       {s.with(bob, "DELETE", path+ofAnn, ""), 403},
		"delete all, as Ann's":   {s.with(bob, "DELETE", conversationsPath+ofAnn+"&updated_before=2100-01-01T00:00:00Z", ""), 403},
		"delete all":             {s.with(bob, "DELETE", conversationsPath+"?updated_before=2100-01-01T00:00:00Z", ""), 200},
		"nobody's":               {s.with(bob, "GET", conversationsPath+"?owner=", ""), 403},
		"without authentication": {open.do("GET", path+ofAnn, ""), 403},
		"anybody":                {open.do("GET", path, ""), 404},
	} {
		if tt.got.status != tt.status {
			t.Errorf("%s: %d %s", name, tt.got.status, tt.got.body)
		}
	}
	for who, want := range map[string][]string{ann: {"of Ann"}, bob: nil, admin: nil} {
		if diff := cmp.Diff(want, eachOf(s.with(who, "GET", conversationsPath, "").body, "conversations", "title")); diff != "" {
			t.Error(diff)
		}
	}
	if got := s.with(admin, "GET", conversationsPath+ofAnn, "").body; !cmp.Equal(eachOf(got, "conversations", "owner"), []string{annsToken.ID}) {
		t.Errorf("for an administrator: %s", got)
	}
	if got := s.with(admin, "DELETE", path+ofAnn, ""); got.status != 200 {
		t.Errorf("by an administrator: %d %s", got.status, got.body)
	}
}

// A client that stops an answer can continue the conversation from what was said.
func TestNative_StoresWhatWasSaid(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		Nth: 1, Answer: fakeengine.Answer{Text: "One two three."}, Cues: []fakeengine.Cue{{After: 2, Gate: "never"}},
	}}})
	stream := s.nativeStream("count", `,"store_partial":true`)
	id := stream.until("chat.start").data.Get("response_id").Str
	if id == "" {
		t.Fatal("the stream doesn't begin with the response's id")
	}
	for said := ""; said != "One two"; {
		said += stream.until("message.delta").data.Get("content").Str
	}
	_ = stream.resp.Body.Close()
	var got answer
	testkit.Eventually(t, "the response is stored", func() bool {
		got = s.do("GET", "/api/v1/responses/"+id, "")
		return got.status == 200
	})
	if gjson.Get(got.body, "status").Str != "incomplete" || gjson.Get(got.body, "output").Raw != `[{"type":"message","content":"One two"}]` {
		t.Errorf("%s", got.body)
	}
	if next := s.native("go on", `,"previous_response_id":"`+id+`"`); next.status != 200 {
		t.Fatalf("%d %s", next.status, next.body)
	}
	sent := s.sent()
	if got := gjson.Get(sent[len(sent)-1], "messages.1").Raw; got != `{"role":"assistant","content":"One two"}` {
		t.Errorf("the engine was sent %s", got)
	}
}

// Nothing is stored of an answer that hasn't begun, or for a client that doesn't ask for it, and nothing is announced.
func TestNative_DiscardsWhatWasSaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		more  string
		after int
		until string
	}{
		"not asked for":    {"", 2, "message.delta"},
		"not to be stored": {`,"store_partial":true,"store":false`, 2, "message.delta"},
		"nothing was said": {`,"store_partial":true`, 0, "chat.start"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
				Nth: 1, Answer: fakeengine.Answer{Text: "One two three."}, Cues: []fakeengine.Cue{{After: tt.after, Gate: "never"}},
			}}})
			stream := s.nativeStream("count", tt.more)
			begun := stream.until("chat.start")
			if begun.data.Get("response_id").Exists() != (tt.after == 0) {
				t.Errorf("the stream begins with %s", begun.data)
			}
			s.fake.Wait(t, func(ev fakeengine.Event) bool { return ev.Kind == fakeengine.Gated })
			if tt.until != "chat.start" {
				stream.until(tt.until)
			}
			_ = stream.resp.Body.Close()
			s.native("another", `,"store":false`) // waits for the only slot, until the first request has ended
			testkit.Eventually(t, "nothing is stored", func() bool { return s.conversations() == 0 })
		})
	}
}

func TestLoad_TellsOfItsProgress(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Steps: 4}})
	got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat","echo_load_config":true}`, "Accept", "text/event-stream")
	names, events := loadEventsOf(t, got)
	last := events[len(events)-1]
	if names[0] != "model_load.start" || names[len(names)-1] != "model_load.end" || last.Get("result.status").Str != "loaded" ||
		last.Get("result.instance_id").Str != "lmcaddy/tinychat" || !last.Get("result.load_config.context_length").Exists() {
		t.Errorf("%s", got.body)
	}
	before := 0.
	for i, e := range events[1 : len(events)-1] {
		if names[i+1] != "model_load.progress" || e.Get("progress").Num <= before || e.Get("model_instance_id").Str != "lmcaddy/tinychat" {
			t.Errorf("%s %s", names[i+1], e)
		}
		before = e.Get("progress").Num
	}
	if got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat"}`, "Accept", "application/json, text/event-stream"); got.header.Get("Content-Type") != endpoint.TypeJSON {
		t.Errorf("a client that takes JSON gets %s", got.header.Get("Content-Type"))
	}
	if got := s.do("POST", "/api/v1/models/load", `{"model":"nope"}`, "Accept", "text/event-stream"); got.status != 404 || got.code() != "model_not_found" {
		t.Errorf("an unknown model: %d %s", got.status, got.body)
	}
}

func TestLoad_FailsAfterItHasBegun(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Steps: 4, Fail: fakeengine.LoadError("unknown model architecture: 'foobar'")}})
	got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat"}`, "Accept", "text/event-stream")
	if got.status == 503 && got.code() == "model_load_failed" {
		return // nothing of its progress was known by then
	}
	names, events := loadEventsOf(t, got)
	if last := events[len(events)-1]; names[len(names)-1] != "error" || last.Get("error.code").Str != "model_load_failed" {
		t.Errorf("%s", got.body)
	}
}

// loadEventsOf returns the names and the data of a stream's events.
func loadEventsOf(t *testing.T, got answer) (names []string, data []gjson.Result) {
	t.Helper()
	if kind := got.header.Get("Content-Type"); got.status != 200 || kind != endpoint.TypeEvents {
		t.Fatalf("%d %s %s", got.status, kind, got.body)
	}
	names, data = readEvents(got.body)
	if len(names) == 0 || len(names) != len(data) {
		t.Fatalf("%s", got.body)
	}
	return names, data
}

// TestConversations_Edited: a conversation is found by its texts, named and pinned.
func TestConversations_Edited(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id := gjson.Get(s.native("about cats", "").body, "response_id").Str
	s.native("about dogs", "")
	titles := func(query string) []string {
		return eachOf(s.do("GET", conversationsPath+"?"+query, "").body, "conversations", "title")
	}
	if got := s.do("PATCH", conversationsPath+"/"+id, `{"title":"Felines","pinned":true}`); got.status != 200 || gjson.Get(got.body, "title").Str != "Felines" || !gjson.Get(got.body, "pinned").Bool() {
		t.Errorf("%d %s", got.status, got.body)
	}
	for query, want := range map[string][]string{"query=CATS": {"Felines"}, "query=feline": {"Felines"}, "pinned=true": {"Felines"}, "query=about": {"about dogs", "Felines"}, "query=nothing": nil} {
		if diff := cmp.Diff(want, titles(query)); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	for body, param := range map[string]string{`{"title":1}`: "title", `{"pinned":"x"}`: "pinned"} {
		if got := s.do("PATCH", conversationsPath+"/"+id, body); got.status != 400 || gjson.Get(got.body, "error.param").Str != param {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	if got := s.do("PATCH", conversationsPath+"/resp_000000", `{"pinned":true}`); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestConversations_Imported: what was exported is stored again, and a response may continue one that is stored.
func TestConversations_Imported(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	first := gjson.Get(s.native("Who are you?", `,"system_prompt":"Be brief."`).body, "response_id").Str
	s.native("And I?", `,"previous_response_id":"`+first+`"`)
	exported := s.do("GET", conversationsPath+"/"+first+"?branches=true", "").body
	got := s.do("POST", conversationsPath, exported)
	id := gjson.Get(got.body, "id").Str
	if got.status != 200 || id == first || gjson.Get(got.body, "turns").Int() != 2 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	again := s.do("GET", conversationsPath+"/"+id+"?branches=true", "").body
	for _, path := range []string{"input", "output", "system_prompt", "usage", "status", "created_at", "model"} {
		if diff := cmp.Diff(eachOf(exported, "responses", path), eachOf(again, "responses", path)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	edited := `{"previous_response_id":"` + id + `","model":"m","input":[{"type":"message","content":"And I?"},{"type":"image","data_url":"data:image/png;base64,` + testkit.Pixel + `"}],"output":[` +
		`{"type":"reasoning","content":"Hm"},{"type":"tool_call","tool":"f","arguments":{"a":1},"output":"[{\"type\":\"text\",\"text\":\"b\"}]","is_error":true,"provider_info":{"type":"plugin","plugin_id":"mcp/x"}},` +
		`{"type":"invalid_tool_call","reason":"no","metadata":{"type":"invalid_name","tool_name":"g"}},{"type":"message","content":"Somebody"}]}`
	if got := s.do("POST", conversationsPath, `{"pinned":true,"title":"Mine","responses":[`+edited+`]}`); gjson.Get(got.body, "id").Str != id || gjson.Get(got.body, "title").Str != "Mine" {
		t.Errorf("%d %s", got.status, got.body)
	}
	last := gjson.Get(s.do("GET", conversationsPath+"/"+id+"?branches=true", "").body, "responses.2")
	if want := gjson.Get(edited, "output").Raw; last.Get("output").Raw != want || last.Get("input.1.type").Str != "image" {
		t.Errorf("%s, want %s", last.Raw, want)
	}
	for body, param := range map[string]string{
		`{"responses":[]}`: "responses", `{"responses":[{"input":1,"output":[]}]}`: "responses[0].input", `{"title":1}`: "title",
		`{"responses":[{"input":[],"output":[]},{"input":[],"output":[],"previous_response_id":"resp_0"}]}`: "responses[1].previous_response_id",
		`{"responses":[{"input":[],"output":[],"previous_response_id":"resp_0"}]}`:                          "previous_response_id",
		`{"responses":[{"input":[{"type":"image","data_url":"https://example.org/a.png"}],"output":[]}]}`:   "responses[0].input[0].data_url",
	} {
		if got := s.do("POST", conversationsPath, body); got.status/100 != 4 || gjson.Get(got.body, "error.param").Str != param {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}
