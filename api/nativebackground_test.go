package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// beginNative begins a native chat in the background whose client disconnects after the event of a type, and returns the path of the response.
func (s *server) beginNative(more, until string) string {
	s.t.Helper()
	status, begun, rest := s.open("/api/v1/chat", `{"model":"tinychat","input":"hi","background":true,"stream":true`+more+`}`, until+"\n", 1)
	_ = rest.Close()
	id := gjson.Get(eventsOf(begun)[0][1], "response_id").Str
	if status != 200 || id == "" {
		s.t.Fatalf("%d %s", status, begun)
	}
	return "/api/v1/responses/" + id
}

// TestNativeBackground_GoesOn: an answer in the background is made without its client, whose stream can be had again, and is continued.
func TestNativeBackground_GoesOn(t *testing.T) {
	t.Parallel()
	script := halfway()
	script.Load.Gate = "load"
	s := serve(t, script)
	path := s.beginNative("", "chat.start")
	s.fake.Wait(t, fakeengine.At("load"))
	if got := s.do("GET", path, ""); got.status != 404 {
		t.Errorf("before its end, it is %d %s", got.status, got.body)
	}
	if list := s.do("GET", "/api/v1/conversations", "").body; gjson.Get(list, "conversations.0.status").Str != "in_progress" {
		t.Errorf("%s", list)
	}
	s.fake.Release("load")
	s.fake.Wait(t, fakeengine.At("half"))
	s.fake.Release("half")
	whole := s.do("GET", path+"?stream=true", "").body
	events := eventsOf(whole)
	if last := events[len(events)-1]; events[0][0] != "chat.start" || last[0] != "chat.end" || gjson.Get(last[1], "result.output.0.content").Str != "one two three four" ||
		!strings.Contains(whole, "model_load.progress") {
		t.Errorf("%s", whole)
	}
	id := strings.TrimPrefix(path, "/api/v1/responses/")
	if got := s.do("GET", path, ""); gjson.Get(got.body, "status").Str != "completed" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.native("more", `,"previous_response_id":"`+id+`"`); got.status != 200 {
		t.Errorf("it can't be continued: %d %s", got.status, got.body)
	}
}

// TestNativeBackground_IsCancelled: what was generated is kept, and a question without an answer isn't.
func TestNativeBackground_IsCancelled(t *testing.T) {
	t.Parallel()
	s := serve(t, halfway())
	path := s.beginNative("", "message.delta")
	s.fake.Wait(t, fakeengine.At("half"))
	got := s.do("POST", path+"/cancel", "")
	if response := gjson.Parse(got.body); got.status != 200 || response.Get("status").Str != "incomplete" || response.Get("output.0.content").Str != "one two" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if whole := s.do("GET", path+"?stream=true", "").body; !strings.Contains(whole, "event: chat.end\n") {
		t.Errorf("%s", whole)
	}
	s.fake.Release("half")
	s.fake.Set(func(script *fakeengine.Script) { script.Rules = []fakeengine.Rule{{Gate: "never"}} })
	path = s.beginNative("", "prompt_processing.start")
	if got := s.do("POST", path+"/cancel", ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := s.conversations(); n != 1 {
		t.Errorf("%d conversations are stored", n)
	}
}

// TestNativeBackground_Refusals: an answer that isn't stored can't be in the background, and one that isn't in the background can't be streamed again.
func TestNativeBackground_Refusals(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{})
	if got := s.native("hi", `,"background":true,"store":false`); got.status != 400 || gjson.Get(got.body, "error.param").Str != "background" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.native("hi", `,"background":true`); got.status != 200 || gjson.Get(got.body, "status").Str != "in_progress" {
		t.Errorf("%d %s", got.status, got.body)
	}
	id := gjson.Get(s.native("hi", "").body, "response_id").Str
	if got := s.do("GET", "/api/v1/responses/"+id+"?stream=true", ""); got.status != 400 || gjson.Get(got.body, "error.code").Str != "stream_unavailable" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestNativeBackground_CallsAreApproved: a call waits until it is approved or refused, and isn't made if it is refused.
func TestNativeBackground_CallsAreApproved(t *testing.T) {
	t.Parallel()
	s, tools := serve(t, callsThen("It said hi.", echo), withMCP), serveTools(t)
	for isApproved, want := range map[bool]string{true: "Echo: hi", false: "The user doesn't allow this call."} {
		before := tools.calls.Load()
		_, begun, rest := s.open("/api/v1/chat", `{"model":"tinychat","input":"Use echo.","background":true,"stream":true,"tool_approval":true`+tools.ephemeral("")+`}`, `"call_id":`, 1)
		_ = rest.Close()
		events := eventsOf(begun)
		path, decision := "/api/v1/responses/"+gjson.Get(events[0][1], "response_id").Str, fmt.Sprintf(`{"call_id":%q,"approved":%t}`, gjson.Get(events[len(events)-1][1], "call_id").Str, isApproved)
		if got := s.do("POST", path+"/approve", decision); got.status != 200 || got.body != decision {
			t.Fatalf("%d %s\n%s", got.status, got.body, begun)
		}
		whole := s.do("GET", path+"?stream=true", "").body
		if !strings.Contains(whole, want) || !strings.Contains(whole, "It said hi.") || (tools.calls.Load() > before) != isApproved {
			t.Errorf("approved %t: %s", isApproved, whole)
		}
		if got := s.do("POST", path+"/approve", decision); got.code() != "call_not_waiting" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	for body, param := range map[string]string{`{"approved":true,"call_id":1}`: "call_id", `{"call_id":"x"}`: "approved"} {
		if got := s.do("POST", "/api/v1/responses/resp_x/approve", body); got.status != 400 || gjson.Get(got.body, "error.param").Str != param {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

// TestNativeBackground_OperatorsWantApproval: calls of a server whose entry says so are only made if they are approved.
func TestNativeBackground_OperatorsWantApproval(t *testing.T) {
	t.Parallel()
	s, tools := serve(t, callsThen("It said hi.", echo), withMCP), serveTools(t)
	s.configure(`{"mcpServers":{"tools":{"url":"` + tools.URL + `/mcp","approval":true}}}`)
	secret, _ := s.token(access.Token{Name: "tools", Scopes: []access.Scope{access.ScopeInference, access.ScopeMCPPlugin}})
	const asked = `{"model":"tinychat","input":"Use echo.","integrations":["mcp/tools"]`
	got := s.with(secret, "POST", "/api/v1/chat", asked+`}`)
	call := gjson.Get(got.body, "output.0")
	if !strings.Contains(call.Get("output").Str, "needs the user's approval") || !call.Get("is_error").Bool() || tools.calls.Load() > 0 {
		t.Errorf("%d %s", got.status, got.body)
	}
	begun := s.with(secret, "POST", "/api/v1/chat", asked+`,"background":true}`)
	path := "/api/v1/responses/" + gjson.Get(begun.body, "response_id").Str
	s.fake.Wait(t, isAsked)
	if got := s.with(secret, "POST", path+"/cancel", ""); got.status/100 == 5 || tools.calls.Load() > 0 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
