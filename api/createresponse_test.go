package api

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// respond asks for a response; more are further fields.
func (s *server) respond(input, more string, header ...string) answer {
	s.t.Helper()
	return s.do("POST", "/v1/responses", `{"model":"tinychat","input":`+input+more+`}`, header...)
}

// kindsOf are the types of a response's output, with their texts, names and results.
func kindsOf(body string) (kinds []string) {
	for _, item := range gjson.Get(body, "output").Array() {
		kind := item.Get("type").Str
		for _, member := range []string{"content.0.text", "name", "server_label", "output", "error.type"} {
			if v := item.Get(member); v.Str != "" {
				kind += " " + v.Str
			}
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// withRemoteMCP opens the gates of responses.
func withRemoteMCP(config *endpoint.Config, settings *node.Settings) {
	withMCP(config, settings)
	settings.Gates.RemoteMCP = true
}

// remoteTools is the tools of a request that names the server.
func (s *toolServer) remoteTools(more string) string {
	return `,"tools":[{"type":"mcp","server_label":"tools","server_url":"` + s.URL + `/mcp"` + more + `}]`
}

func TestResponses_State(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{})
	first := s.respond(`"hi"`, "")
	id := gjson.Get(first.body, "id").Str
	if first.status != http.StatusOK || id == "" {
		t.Fatal(first.status, first.body)
	}
	message := gjson.Get(first.body, `output.#(type=="message").id`).Str
	lost := s.respond(`"hi"`, `,"store":false`)
	native := gjson.Get(s.native("hi", "").body, "response_id").Str
	if got := s.native("and?", `,"previous_response_id":"`+id+`"`); got.status != http.StatusNotFound {
		t.Errorf("the native chat continues a response: %d %s", got.status, got.body)
	}
	for name, tt := range map[string]struct {
		input, more string
		status      int
		want        string // in the error, or what the engine is sent
	}{
		"continued":              {`"and?"`, `,"previous_response_id":"` + id + `"`, 200, `"role":"assistant","content":"Hello from the fake engine."`},
		"new instructions":       {`"and?"`, `,"previous_response_id":"` + id + `","instructions":"Be brief."`, 200, `"role":"system","content":"Be brief."`},
		"unknown":                {`"and?"`, `,"previous_response_id":"resp_0"`, 400, "Previous response with id 'resp_0' not found."},
		"not stored":             {`"and?"`, `,"previous_response_id":"` + gjson.Get(lost.body, "id").Str + `"`, 400, "previous_response_not_found"},
		"the native chat's":      {`"and?"`, `,"previous_response_id":"` + native + `"`, 400, "previous_response_not_found"},
		"an item":                {`[{"role":"user","content":"hi"},{"type":"item_reference","id":"` + message + `"},{"role":"user","content":"and?"}]`, "", 200, `"content":"Hello from the fake engine."`},
		"an item that it has":    {`[{"type":"item_reference","id":"` + message + `"},{"role":"user","content":"and?"}]`, `,"previous_response_id":"` + id + `"`, 200, `"content":"and?"`},
		"an unknown item":        {`[{"type":"item_reference","id":"msg_0"}]`, "", 404, "Item with id 'msg_0' not found."},
		"a thought of long ago":  {`[{"type":"item_reference","id":"rs_0"},{"role":"user","content":"and?"}]`, "", 200, `"content":"and?"`},
		"a result without calls": {`[{"type":"function_call_output","call_id":"c","output":"x"}]`, "", 400, "No tool call found for function call output with call_id c."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.respond(tt.input, tt.more+`,"metadata":{"test":"`+name+`"}`)
			if got.status != tt.status || tt.status != 200 && !strings.Contains(got.body, tt.want) {
				t.Fatalf("%d %s, want %d %s", got.status, got.body, tt.status, tt.want)
			}
			if tt.status == 200 && !strings.Contains(strings.Join(s.sent(), "\n"), tt.want) {
				t.Errorf("the engine was sent %s", s.sent())
			}
		})
	}
}

func TestResponses_Functions(t *testing.T) {
	t.Parallel()
	const weather = `,"tools":[{"type":"function","name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}},"strict":null}]`
	s := serve(t, callsThen("Sunny.", fakeengine.ToolCall{Name: "weather", Arguments: `{"city":"Rome"}`, ID: "call_1"}))
	got := s.respond(`"How is Rome?"`, weather)
	call := gjson.Get(got.body, "output.0")
	if got.status != 200 || call.Get("type").Str != "function_call" || call.Get("call_id").Str != "call_1" || call.Get("arguments").Str != `{"city":"Rome"}` || gjson.Get(got.body, "status").Str != "completed" {
		t.Fatal(got.status, got.body)
	}
	const output = `{"type":"function_call_output","call_id":"call_1","output":"25 degrees"}`
	for name, again := range map[string]answer{
		"continued": s.respond(`[`+output+`]`, weather+`,"previous_response_id":"`+gjson.Get(got.body, "id").Str+`"`),
		"resent":    s.respond(`[{"role":"user","content":"How is Rome?"},`+call.Raw+`,`+output+`]`, weather),
	} {
		if diff := cmp.Diff([]string{"message Sunny."}, kindsOf(again.body)); diff != "" {
			t.Errorf("%s: %d %s\n%s", name, again.status, again.body, diff)
		}
	}
}

func TestResponses_Servers(t *testing.T) {
	t.Parallel()
	s, tools := serve(t, callsThen("It said hi.", echo), withRemoteMCP), serveTools(t)
	got := s.respond(`"Use echo."`, tools.remoteTools(`,"allowed_tools":["echo"],"require_approval":"never"`))
	want := []string{"mcp_list_tools tools", "mcp_call echo tools Echo: hi", "message It said hi."}
	if diff := cmp.Diff(want, kindsOf(got.body)); got.status != 200 || diff != "" {
		t.Fatalf("%d %s\n%s", got.status, got.body, diff)
	}
	streamed := s.respond(`"Use echo."`, tools.remoteTools("")+`,"stream":true`)
	last := ""
	for line := range strings.Lines(streamed.body) {
		if data, ok := strings.CutPrefix(line, "data: {"); ok {
			last = "{" + data
		}
	}
	if kind := gjson.Get(last, "type").Str; kind != "response.completed" || cmp.Diff(want, kindsOf(gjson.Get(last, "response").Raw)) != "" {
		t.Errorf("the stream ends with %s", last)
	}
	referred := s.respond(`[{"role":"user","content":"Use echo."},{"type":"item_reference","id":"`+gjson.Get(got.body, "output.1.id").Str+`"},{"role":"user","content":"And?"}]`, "")
	if sent := s.sent(); referred.status != 200 || !strings.Contains(sent[len(sent)-1], `"role":"tool","content":"Echo: hi"`) {
		t.Errorf("%d %s; the engine was sent %s", referred.status, referred.body, sent[len(sent)-1])
	}
	again := s.respond(`"And?"`, `,"previous_response_id":"`+gjson.Get(got.body, "id").Str+`"`)
	if sent := s.sent(); again.status != 200 || !strings.Contains(sent[len(sent)-1], `"role":"tool","content":"Echo: hi"`) {
		t.Errorf("%d; the engine was sent %s", again.status, sent[len(sent)-1])
	}
}

// TestResponses_Permission: who may use which servers.
func TestResponses_Permission(t *testing.T) {
	t.Parallel()
	closed, half := serve(t, &fakeengine.Script{}), serve(t, &fakeengine.Script{}, func(_ *endpoint.Config, settings *node.Settings) { settings.Gates.RemoteMCP = true })
	opened, tools := serve(t, callsThen("Done.", echo), withRemoteMCP), serveTools(t)
	opened.configure(`{"mcpServers":{"my_Tools":{"url":"` + tools.URL + `/mcp"}}}`)
	full, _ := opened.token(access.Token{})
	poor, _ := opened.token(access.Token{Scopes: []access.Scope{access.ScopeInference}})
	const plugin = `,"tools":[{"type":"mcp","server_label":"my-tools"}]`
	bearer := func(secret string) []string { return []string{"Authorization", "Bearer " + secret} }
	for name, tt := range map[string]struct {
		s      *server
		more   string
		header []string
		status int
		want   string
	}{
		"closed":                 {closed, tools.remoteTools(""), nil, 403, "allow remote_mcp"},
		"plugin, closed":         {closed, plugin, nil, 403, "allow remote_mcp"},
		"plugin, half open":      {half, plugin, nil, 403, "allow plugin_mcp"},
		"open":                   {opened, tools.remoteTools(""), nil, 200, ""},
		"plugin, no token":       {opened, plugin, nil, 401, "Authorization header"},
		"plugin, a poor token":   {opened, plugin, bearer(poor), 403, "mcp.plugin"},
		"plugin":                 {opened, plugin, bearer(full), 200, ""},
		"locked, a poor token":   {guarded(opened), tools.remoteTools(""), bearer(poor), 403, "mcp.ephemeral"},
		"locked":                 {guarded(opened), tools.remoteTools(""), bearer(full), 200, ""},
		"nobody there":           {opened, `,"tools":[{"type":"mcp","server_label":"l","server_url":"http://127.0.0.1:1/mcp"}]`, nil, 424, "external_connector_error"},
		"a private address":      {opened, `,"tools":[{"type":"mcp","server_label":"l","server_url":"http://127.0.0.2:1/mcp"}]`, nil, 424, "non-public address"},
		"nobody there, a stream": {opened, `,"stream":true,"tools":[{"type":"mcp","server_label":"l","server_url":"http://127.0.0.1:1/mcp"}]`, nil, 200, "event: response.mcp_list_tools.failed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tt.s.respond(`"Use echo."`, tt.more, tt.header...)
			if got.status != tt.status || !strings.Contains(got.body, tt.want) {
				t.Fatalf("%d %s, want %d %s", got.status, got.body, tt.status, tt.want)
			}
			if got.status == 200 && !strings.HasPrefix(got.body, "event: ") && gjson.Get(got.body, "output.1.type").Str != "mcp_call" {
				t.Errorf("%s", got.body)
			}
		})
	}
}

// TestResponses_Faults: an answer that breaks off is told by an event if something of it was told, and by a status otherwise.
func TestResponses_Faults(t *testing.T) {
	t.Parallel()
	broken := fakeengine.Rule{Cues: []fakeengine.Cue{{After: 2, Gate: "seen", Do: fakeengine.Crash}}}
	s := serve(t, noSecond(broken))
	_, begun, rest := s.open("/v1/responses", `{"model":"tinychat","stream":true,"input":"hi"}`, `"delta":"Hello"`, 1)
	s.fake.Release("seen")
	left, err := io.ReadAll(rest)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for line := range strings.Lines(begun + string(left)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			kinds = append(kinds, gjson.Get(data, "type").Str)
		}
	}
	if n := len(kinds); n < 3 || kinds[n-3] != "error" || kinds[n-2] != "response.failed" || kinds[n-1] != "" {
		t.Errorf("the stream ends with %v", kinds)
	}
	if got := serve(t, firstProcess(fakeengine.Rule{Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}})).respond(`"hi"`, ""); got.status != 200 || cmp.Diff([]string{"message " + healthy}, kindsOf(got.body)) != "" {
		t.Errorf("asked again: %d %s", got.status, got.body)
	}
	if got := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Status: 500}}}).respond(`"hi"`, `,"stream":true`); got.status < 500 || gjson.Get(got.body, "error.message").Str == "" {
		t.Errorf("before anything was told: %d %s", got.status, got.body)
	}
}
