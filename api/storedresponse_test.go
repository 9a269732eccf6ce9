package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func TestStored_IsWhatWasAnswered(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Reasoning: "Well.", Text: "Hello there."}, PromptTokens: 12, CachedTokens: 3}}})
	for name, more := range map[string]string{
		"plain":   "",
		"settled": `,"instructions":"Be brief.","metadata":{"a":"b"},"temperature":0.5,"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}],"max_output_tokens":99`,
		"limited": `,"max_output_tokens":1`,
	} {
		first := s.respond(`"hi"`, more)
		path := "/v1/responses/" + gjson.Get(first.body, "id").Str
		got := s.do("GET", path, "")
		if diff := cmp.Diff(first.body, got.body); first.status != 200 || got.status != 200 || diff != "" {
			t.Errorf("%s: %d, %d (-answered +stored):\n%s", name, first.status, got.status, diff)
		}
	}
}

func TestStored_IsDeleted(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id := gjson.Get(s.respond(`"hi"`, "").body, "id").Str
	next := gjson.Get(s.respond(`"hi"`, `,"previous_response_id":"`+id+`"`).body, "id").Str
	if got := s.do("DELETE", "/v1/responses/"+id, ""); got.status != 200 || got.body != `{"id":"`+id+`","object":"response","deleted":true}` {
		t.Errorf("%d %s", got.status, got.body)
	}
	want := `{"error":{"message":"Response with id '` + id + `' not found.","type":"invalid_request_error","param":null,"code":null}}`
	for _, request := range [][2]string{{"DELETE", ""}, {"GET", ""}, {"GET", "/input_items"}, {"POST", "/cancel"}} {
		if got := s.do(request[0], "/v1/responses/"+id+request[1], ""); got.status != 404 || got.body != want {
			t.Errorf("%v: %d %s", request, got.status, got.body)
		}
	}
	if got := s.respond(`"hi"`, `,"previous_response_id":"`+id+`"`); got.status != 400 || got.code() != "previous_response_not_found" {
		t.Errorf("it was continued: %d %s", got.status, got.body)
	}
	if got := s.respond(`"hi"`, `,"previous_response_id":"`+next+`"`); got.status != 200 {
		t.Errorf("the one that continues it: %d %s", got.status, got.body)
	}
}

// What isn't stored can't be had later.
func TestStored_NotIfTheClientWantsNone(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id := gjson.Get(s.respond(`"hi"`, `,"store":false`).body, "id").Str
	if got := s.do("GET", "/v1/responses/"+id, ""); id == "" || got.status != 404 {
		t.Errorf("%q: %d %s", id, got.status, got.body)
	}
}

// Responses of one API are unknown to the other.
func TestStored_FamiliesNeverMix(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	native := gjson.Get(s.native("hi", "").body, "response_id").Str
	other := gjson.Get(s.respond(`"hi"`, "").body, "id").Str
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/responses/" + native, "", 404},
		{"DELETE", "/v1/responses/" + native, "", 404},
		{"GET", "/v1/responses/" + native + "/input_items", "", 404},
		{"POST", "/v1/responses/" + native + "/cancel", "", 404},
		{"POST", "/v1/responses", `{"model":"tinychat","input":"hi","previous_response_id":"` + native + `"}`, 400},
		{"POST", "/v1/responses/input_tokens", `{"model":"tinychat","input":"hi","previous_response_id":"` + native + `"}`, 400},
		{"POST", "/v1/responses/compact", `{"model":"tinychat","previous_response_id":"` + native + `"}`, 400},
		{"GET", "/api/v1/responses/" + other, "", 404},
		{"DELETE", "/api/v1/responses/" + other, "", 404},
		{"POST", "/api/v1/chat", `{"model":"tinychat","input":"hi","previous_response_id":"` + other + `"}`, 404},
	} {
		if got := s.do(tt.method, tt.path, tt.body); got.status != tt.status {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, got.status, got.body)
		}
	}
	for _, path := range []string{"/v1/responses/" + other, "/api/v1/responses/" + native} {
		if got := s.do("GET", path, ""); got.status != 200 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestStored_InputItems(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	var input []string
	for i := range 25 {
		input = append(input, fmt.Sprintf(`{"role":"user","content":"say %d"}`, i))
	}
	got := s.do("POST", "/v1/responses", `{"model":"tinychat","input":[`+strings.Join(input, ",")+`]}`)
	path := "/v1/responses/" + gjson.Get(got.body, "id").Str + "/input_items"
	list := func(query string) (texts []string, list gjson.Result) {
		t.Helper()
		got := s.do("GET", path+query, "")
		if list = gjson.Parse(got.body); got.status != 200 || list.Get("object").Str != "list" {
			t.Fatalf("%s: %d %s", query, got.status, got.body)
		}
		data := list.Get("data").Array()
		for _, item := range data {
			texts = append(texts, strings.TrimPrefix(item.Get("content.0.text").Str, "say "))
			if item.Get("type").Str != "message" || item.Get("content.0.type").Str != "input_text" || item.Get("id").Str == "" {
				t.Errorf("%s", item)
			}
		}
		if len(data) > 0 && (list.Get("first_id").Str != data[0].Get("id").Str || list.Get("last_id").Str != data[len(data)-1].Get("id").Str) {
			t.Errorf("%s", list)
		}
		return texts, list
	}
	newest, page := list("")
	if want := "24 23 22 21 20 19 18 17 16 15 14 13 12 11 10 9 8 7 6 5"; strings.Join(newest, " ") != want || !page.Get("has_more").Bool() {
		t.Errorf("the first page has %v, %s", newest, page.Get("has_more"))
	}
	if rest, page := list("?after=" + page.Get("last_id").Str); strings.Join(rest, " ") != "4 3 2 1 0" || page.Get("has_more").Bool() {
		t.Errorf("the second page has %v, %s", rest, page.Get("has_more"))
	}
	first, page := list("?order=asc&limit=2")
	if strings.Join(first, " ") != "0 1" || !page.Get("has_more").Bool() {
		t.Errorf("upwards: %v, %s", first, page.Get("has_more"))
	}
	if next, _ := list("?order=asc&limit=3&include[]=x&after=" + page.Get("last_id").Str); strings.Join(next, " ") != "2 3 4" {
		t.Errorf("upwards, after them: %v", next)
	}
	if all, page := list("?limit=100"); len(all) != 25 || page.Get("has_more").Bool() {
		t.Errorf("all: %v", all)
	}
	for query, param := range map[string]string{"?limit=0": "limit", "?limit=101": "limit", "?limit=x": "limit", "?order=x": "order", "?after=msg_x": "after"} {
		if got := s.do("GET", path+query, ""); got.status != 400 || gjson.Get(got.body, "error.param").Str != param {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

// TestStored_ForeignItems: what only its client knows is kept as it was sent, and can be referred to.
func TestStored_ForeignItems(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const snapshot, message = `"type":"ghost_snapshot","ghost_commit":{"id":"\u0000 c","parent":null}`, `"type":"agent_message","id":"am_1","content":[{"type":"encrypted_content","data":"x"}]`
	before := len(s.fake.Events())
	got := s.do("POST", "/v1/responses", `{"model":"tinychat","input":[{"role":"user","content":"hi"},{`+snapshot+`},{`+message+`}]}`)
	list := s.do("GET", "/v1/responses/"+gjson.Get(got.body, "id").Str+"/input_items?order=asc", "")
	id := gjson.Get(list.body, "data.1.id").Str
	kept := gjson.Get(list.body, "data.1").Raw + gjson.Get(list.body, "data.2").Raw
	if want := `{"id":"` + id + `",` + snapshot + `}{` + message + `}`; got.status != 200 || id == "" || kept != want {
		t.Errorf("%d %s\n%s, want %s", got.status, got.body, kept, want)
	}
	got = s.do("POST", "/v1/responses", `{"model":"tinychat","previous_response_id":"`+gjson.Get(got.body, "id").Str+`","input":[{"role":"user","content":"again"},{"type":"item_reference","id":"`+id+`"}]}`)
	if got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, ev := range s.fake.Events()[before:] {
		if strings.Contains(ev.Body, "ghost") || strings.Contains(ev.Body, "encrypted") {
			t.Errorf("the model was sent %s", ev.Body)
		}
	}
}

func TestCountResponse(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	count := func(more string) int64 {
		t.Helper()
		got := s.do("POST", "/v1/responses/input_tokens", `{"model":"tinychat"`+more+`}`)
		if got.status != 200 || gjson.Get(got.body, "object").Str != "response.input_tokens" {
			t.Fatalf("%s: %d %s", more, got.status, got.body)
		}
		return gjson.Get(got.body, "input_tokens").Int()
	}
	plain := count(`,"input":"one two three"`)
	id := gjson.Get(s.respond(`"hi"`, "").body, "id").Str
	for name, more := range map[string]int64{
		"items":        count(`,"input":[{"role":"user","content":"one two three"},{"role":"assistant","content":"four"},{"role":"user","content":"five"}]`),
		"instructions": count(`,"input":"one two three","instructions":"Be brief."`),
		"previous":     count(`,"input":"one two three","previous_response_id":"` + id + `"`),
	} {
		if more <= plain {
			t.Errorf("%s: %d tokens, %d without", name, more, plain)
		}
	}
	count(`,"input":"one two three","tools":[{"type":"function","name":"look","parameters":{"type":"object"}}]`) // the real engine counts them
	if sent := s.fake.Events(); !slices.ContainsFunc(sent, func(ev fakeengine.Event) bool { return isAsked(ev) && strings.Contains(ev.Body, `"look"`) }) {
		t.Error("the tools are not counted")
	}
	if plain < 3 {
		t.Errorf("%d tokens", plain)
	}
	if got := s.do("POST", "/v1/responses/input_tokens", `{"input":"hi"}`); got.status != 400 || gjson.Get(got.body, "error.param").Str != "model" {
		t.Errorf("without a model: %d %s", got.status, got.body)
	}
}

// A summary stands for the conversation from then on, for the model as well.
func TestCompact(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: "Summarize the conversation", Answer: fakeengine.Answer{Reasoning: "What was it?", Text: " They spoke of bees. "}, PromptTokens: 30},
		{Contains: "They spoke of bees.", Answer: fakeengine.Answer{Text: "Bees, then."}},
	}})
	got := s.do("POST", "/v1/responses/compact", `{"model":"tinychat","instructions":"Be kind.","input":[{"role":"user","content":"Tell me of bees."},{"role":"assistant","content":"They hum."}]}`)
	answer := gjson.Parse(got.body)
	item := answer.Get("output.0")
	if got.status != 200 || answer.Get("object").Str != "response.compaction" || !strings.HasPrefix(answer.Get("id").Str, "resp_") || answer.Get("created_at").Int() == 0 ||
		answer.Get("output.#").Int() != 1 || item.Get("type").Str != "compaction" || item.Get("id").Str == "" || item.Get("encrypted_content").Str == "" ||
		answer.Get("usage.input_tokens").Int() != 30 || answer.Get("usage.output_tokens").Int() == 0 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	sent := s.sent()
	for _, want := range []string{"Tell me of bees.", "They hum.", "Be kind."} {
		if !strings.Contains(sent[len(sent)-1], want) {
			t.Errorf("the model was asked without %q: %s", want, sent[len(sent)-1])
		}
	}
	next := s.do("POST", "/v1/responses", `{"model":"tinychat","input":[`+item.Raw+`,{"role":"user","content":"Go on."}]}`)
	if text := outputText(gjson.Parse(next.body)); next.status != 200 || text != "Bees, then." {
		t.Errorf("continued: %d %s", next.status, next.body)
	}
	if n := s.stored(); n != 1 {
		t.Errorf("%d turns are stored: a summary isn't one", n)
	}
}

func TestCompact_Refuses(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Reasoning: "Nothing but thoughts."}}}})
	for name, tt := range map[string]struct {
		body, param string
		status      int
	}{
		"no model":        {`{"input":"hi"}`, "model", 400},
		"no conversation": {`{"model":"tinychat"}`, "input", 400},
		"no summary":      {`{"model":"tinychat","input":"hi"}`, "", 502},
		"no room for it":  {`{"model":"tinychat","input":"hi","max_output_tokens":2}`, "max_output_tokens", 400},
	} {
		if got := s.do("POST", "/v1/responses/compact", tt.body); got.status != tt.status || gjson.Get(got.body, "error.param").Str != tt.param {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}
