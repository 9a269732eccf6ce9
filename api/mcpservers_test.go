package api

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/node/access"
)

func TestMCP_Servers(t *testing.T) {
	t.Parallel()
	open, tools := serve(t, callsThen("It said hi.", echo), withMCP), serveTools(t)
	s := guarded(open)
	user, _ := s.token(access.Token{})
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	none, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeInference, access.ScopeModelsManage}})
	const path = "/api/v1/mcp"
	if got := s.with(user, "GET", path, ""); got.body != `{"servers":[]}` || got.status != 200 {
		t.Errorf("without a file: %d %s", got.status, got.body)
	}
	s.configure(`{"mcpServers":{"my tools":{"url":"` + tools.URL + `/mcp?key=secret","headers":{"X":"secret"}},"gone":{"command":"/no/such/program","args":["secret"],"env":{"A":"secret"}},"wrong":{"url":"secret"}}}`)
	for _, at := range []string{path, path + "/my tools", path + "/my-tools", path + "/gone", path + "/wrong"} {
		for _, who := range []string{user, admin} {
			got := s.with(who, "GET", strings.ReplaceAll(at, " ", "%20"), "")
			if strings.Contains(got.body, "secret") || got.status != 200 {
				t.Errorf("%s: %d %s", at, got.status, got.body)
			}
			if sees := strings.Contains(got.body, `"url":"`+tools.URL+`"`) || strings.Contains(got.body, `"command":"/no/such/program"`); sees != (who == admin && !strings.Contains(at, "wrong")) {
				t.Errorf("%s: an administrator sees more: %s", at, got.body)
			}
		}
	}
	one := gjson.Parse(s.with(user, "GET", path+"/my%20tools", "").body)
	if one.Get("status").Str != "connected" || one.Get("transport").Str != "http" || one.Get("tools.#.name").Raw != `["die","echo","wait"]` ||
		one.Get("tools.1.description").Str != "Echoes." || one.Get("tools.1.input_schema.required.0").Str != "message" {
		t.Error(one)
	}
	list := gjson.Parse(s.with(user, "GET", path, "").body)
	if list.Get("servers.#.label").Raw != `["gone","my tools","wrong"]` || list.Get("servers.#.status").Raw != `["failed","connected","failed"]` ||
		list.Get("servers.1.tools").Raw != "3" || list.Get("servers.0.tools").Exists() || list.Get("servers.0.error").Str == "" || list.Get("servers.2.error").Str == "" || list.Get("servers.1.sessions").Raw != "0" {
		t.Error(list)
	}
	s.configure(`{"mcpServers":{"my tools":{"url":"` + tools.URL + `/mcp"}}}`)
	if list := s.with(user, "GET", path, "").body; list != `{"servers":[{"label":"my tools","transport":"http","status":"idle","sessions":0}]}` {
		t.Error(list)
	}
	s.configure(`{"mcpServers":`)
	for name, tt := range map[string]struct {
		got    answer
		status int
		code   string
	}{
		"a broken file":            {s.with(user, "GET", path, ""), 400, "plugin_connection_error"},
		"one, a broken file":       {s.with(user, "GET", path+"/x", ""), 400, "plugin_connection_error"},
		"without the scope":        {s.with(none, "GET", path, ""), 403, "missing_scope"},
		"without a token":          {s.do("GET", path, ""), 401, "invalid_api_key"},
		"without authentication":   {open.do("GET", path, ""), 401, "invalid_api_key"},
		"one, no authentication":   {open.do("GET", path+"/x", ""), 401, "invalid_api_key"},
		"a token without a scope":  {open.with(none, "GET", path, ""), 403, "missing_scope"},
		"where the gate is closed": {guarded(serve(t, nil)).with("sk-lm-AAAAAAAA:x", "GET", path, ""), 401, "invalid_api_key"},
	} {
		if tt.got.status != tt.status || tt.code != "" && tt.got.code() != tt.code {
			t.Errorf("%s: %d %s", name, tt.got.status, tt.got.body)
		}
	}
	s.configure(`{"mcpServers":{}}`)
	if got := s.with(user, "GET", path+"/nope", ""); got.status != 404 || got.code() != "unknown_plugin" {
		t.Errorf("unknown: %d %s", got.status, got.body)
	}
	closed := serve(t, nil)
	secret, _ := closed.token(access.Token{})
	for _, at := range []string{path, path + "/x"} {
		if got := closed.with(secret, "GET", at, ""); got.status != 403 || got.code() != "gate_closed" {
			t.Errorf("the gate is closed: %d %s", got.status, got.body)
		}
	}
}
