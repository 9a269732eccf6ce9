package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

func inspecting(n int) option {
	return func(_ *endpoint.Config, settings *node.Settings) { settings.Inspect = n }
}

func (s *server) wholeRequest(secret, id string) resource.WholeRequest {
	s.t.Helper()
	got := s.with(secret, "GET", "/api/v1/requests/"+id, "")
	var whole resource.WholeRequest
	if err := json.Unmarshal([]byte(got.body), &whole); err != nil || got.status != http.StatusOK {
		s.t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	return whole
}

func TestInspect_OneRequestWhole(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two"}}}}, inspecting(9))
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	for _, stream := range []string{"true", "false"} {
		id := "stream-" + stream
		ask := `{"model":"tinychat","max_tokens":9,"stream":` + stream + `,"messages":[{"role":"user","content":"Hello?"}]}`
		got := s.do("POST", "/v1/messages", ask, "X-Request-Id", id, "X-Api-Key", "sk-lm-AAAAAAAA:secretsecretsecret00", "Cookie", "session=secret", "User-Agent", "test")
		whole := s.wholeRequest(admin, id)
		if whole.Outcome != "ok" || whole.Status != 200 || whole.TokensOut != 2 || whole.Dialect != "anthropic" || whole.Stream != (stream == "true") {
			t.Errorf("%+v", whole.Request)
		}
		if whole.Client.Body != ask || whole.Client.BodyBytes != int64(len(ask)) || whole.Response.Body != got.body {
			t.Errorf("%+v\n%+v", whole.Client, whole.Response)
		}
		for name, want := range map[string][]string{"User-Agent": {"test"}, "X-Api-Key": {"***"}, "Cookie": {"***"}} {
			if diff := cmp.Diff(want, whole.Client.Header[name]); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if whole.Response.Header["Content-Type"] == nil || len(whole.Upstream) != 1 {
			t.Fatalf("%+v", whole)
		}
		u := whole.Upstream[0]
		if u.Status != 200 || u.Instance != "lmcaddy/tinychat" || u.Path == "" || !strings.Contains(u.Request.Body, "Hello?") || !strings.Contains(u.Response.Body, "data: ") || u.Seconds <= 0 {
			t.Errorf("%+v", u)
		}
	}
	var list resource.Requests
	if err := json.Unmarshal([]byte(s.with(admin, "GET", "/api/v1/requests", "").body), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Requests) != 2 || list.Requests[0].ID != "stream-false" || list.Requests[1].ID != "stream-true" {
		t.Errorf("%+v", list)
	}
}

// What an MCP server of a request needs as a secret is nowhere to be seen.
func TestInspect_MasksSecretsOfServers(t *testing.T) {
	t.Parallel()
	s, tools := serve(t, callsThen("It said hi.", echo), withMCP, inspecting(9), func(_ *endpoint.Config, settings *node.Settings) { settings.Gates.RemoteMCP = true }), serveTools(t)
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	for id, tt := range map[string]struct{ path, body string }{
		"native":    {"/api/v1/chat", `"input":"Use it."` + tools.ephemeral(`,"headers":{"X-Key":"secret","B":"secret2"}`)},
		"responses": {"/v1/responses", `"input":"Use it.","tools":[{"type":"mcp","server_label":"tools","server_url":"` + tools.URL + `/mcp?key=secret","authorization":"secret","headers":{"X":"secret"}}]`},
		"broken":    {"/api/v1/chat", `"input":"Use it." "secret`},
	} {
		s.do("POST", tt.path, `{"model":"tinychat",`+tt.body+`}`, "X-Request-Id", id, "X-Secret", "secret")
		got := s.with(admin, "GET", "/api/v1/requests/"+id, "").body
		if strings.Contains(got, "secret") {
			t.Errorf("%s: %s", id, got)
		}
		whole := s.wholeRequest(admin, id)
		if id != "broken" && (!strings.Contains(whole.Client.Body, "Use it.") || !strings.Contains(whole.Client.Body, tools.URL) || len(whole.Upstream) != 2) {
			t.Errorf("%s: too little is left: %+v", id, whole)
		}
	}
}

func TestInspect_IsForAdministratorsWhereItIsOn(t *testing.T) {
	t.Parallel()
	off, on := serve(t, nil), serve(t, nil, inspecting(2))
	on.chat("")
	for name, tt := range map[string]struct {
		s      *server
		scopes []access.Scope
		path   string
		status int
		code   string
	}{
		"off":              {off, []access.Scope{access.ScopeAdmin}, "/api/v1/requests/x", 404, "inspection_off"},
		"unknown":          {on, []access.Scope{access.ScopeAdmin}, "/api/v1/requests/x", 404, "request_not_found"},
		"no administrator": {on, access.DefaultScopes, "/api/v1/requests/x", 403, "missing_scope"},
	} {
		secret, _ := tt.s.token(access.Token{Scopes: tt.scopes})
		if got := tt.s.with(secret, "GET", tt.path, ""); got.status != tt.status || !strings.Contains(got.body, tt.code) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := on.do("GET", "/api/v1/requests/x", ""); got.status != 401 {
		t.Errorf("without a token: %d %s", got.status, got.body)
	}
}

// A body with an image is whole; of a header and a path that are too long, there isn't more than is bounded.
func TestInspect_LargeRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, inspecting(9))
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	image := `{"model":"tinychat","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("QUJD", 1<<20) + `"}}]}]}`
	s.do("POST", "/v1/chat/completions", image, "X-Request-Id", "image")
	if whole := s.wholeRequest(admin, "image"); whole.Client.Body != image {
		t.Errorf("%d bytes of %d", len(whole.Client.Body), len(image))
	}
	long := strings.Repeat("x", 200<<10)
	s.do("POST", "/v1/responses/"+long+"/cancel", "", "X-Request-Id", "long", "User-Agent", long, "X-"+long[:1000], "y", "Accept", "a/b")
	whole := s.wholeRequest(admin, "long")
	if len(whole.Path) > 2<<10 || whole.Client.Header["User-Agent"] != nil || whole.Client.Header["…"] == nil || whole.Client.Header["Accept"] == nil {
		t.Errorf("a path of %d bytes; %.3000v", len(whole.Path), whole.Client.Header)
	}
}

// A response in the background is one request, to its end.
func TestInspect_AResponseInTheBackground(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two"}}}}, inspecting(9))
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	s.do("POST", "/v1/responses", `{"model":"tinychat","background":true,"input":"hi"}`, "X-Request-Id", "back")
	whole := s.wholeRequest(admin, "back")
	testkit.Eventually(t, "the request has ended", func() bool {
		whole = s.wholeRequest(admin, "back")
		return whole.Outcome != ""
	})
	if len(whole.Upstream) != 1 || !strings.Contains(whole.Response.Body, "response.completed") || whole.Client.BodyBytes == 0 {
		t.Errorf("%+v", whole)
	}
}
