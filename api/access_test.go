package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
)

// guarded is the same node on a site with authentication. Each request is from an address of its own, so that none is
// slowed down for another's wrong token.
func guarded(s *server, options ...option) *server {
	s.t.Helper()
	config := Config{Node: func(context.Context) (*node.Node, error) { return s.node, nil }, Log: slog.New(slog.DiscardHandler)}
	for _, o := range options {
		o(&config, new(node.Settings))
	}
	behind := New(config)
	gate := New(Config{Node: config.Node, Log: config.Log, CORSOf: func(*http.Request) []string { return config.CORS }})
	var n atomic.Int32
	g := *s
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if admitted, ok := gate.Admit(w, r, nil, fmt.Sprintf("10.0.%d.%d:1", n.Load()/250, n.Add(1)%250)); ok {
			behind.ServeHTTP(w, admitted)
		}
	}))
	s.t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
	})
	return &g
}

// token makes a token; with no scopes it has the default ones.
func (s *server) token(t node.Token) (secret string, _ node.Token) {
	s.t.Helper()
	if t.Name == "" {
		t.Name = "of a test"
	}
	if t.Scopes == nil {
		t.Scopes = node.DefaultScopes
	}
	secret, t, err := s.node.CreateToken(s.t.Context(), t)
	if err != nil {
		s.t.Fatal(err)
	}
	return secret, t
}

func (s *server) expired() string {
	s.t.Helper()
	secret, made := s.token(node.Token{Scopes: node.Scopes})
	err := s.node.Conversations().UpdateToken(s.t.Context(), store.Token{
		ID: made.ID, Name: made.Name, Rights: json.RawMessage(`{"scopes":["admin"]}`), Expires: time.Now().Add(-time.Second),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}

// with asks with a token.
func (s *server) with(secret, method, path, body string, header ...string) answer {
	s.t.Helper()
	return s.do(method, path, body, append(header, "Authorization", "Bearer "+secret)...)
}

// example is a path that a route fits.
func (r *route) example() string {
	path := strings.Replace(r.path, "*", "0123456789", 1)
	if strings.HasSuffix(path, "/") {
		path += "nobody/nothing"
	}
	return path
}

// wantDenied checks an answer of 401 or 403 in the dialect of its path.
func wantDenied(t *testing.T, path string, got answer, status int, code, challenge string) {
	t.Helper()
	body, kind, words := gjson.Parse(got.body), "invalid_request", "type message code"
	e := body.Get("error")
	switch {
	case strings.HasPrefix(path, "/v1/messages"):
		kind, words, code = "authentication_error", "type message", ""
		if status == http.StatusForbidden {
			kind = "permission_error"
		}
		if body.Get("type").Str != "error" || body.Get("request_id").Str == "" || got.header.Get("Request-Id") == "" {
			t.Errorf("not the Messages API's: %s", got.body)
		}
	case strings.HasPrefix(path, "/v1"):
		kind, words = "invalid_request_error", "message type param code"
	}
	var keys []string
	e.ForEach(func(key, _ gjson.Result) bool {
		keys = append(keys, key.Str)
		return true
	})
	if strings.Join(keys, " ") != words || got.status != status || e.Get("type").Str != kind || e.Get("code").Str != code || e.Get("message").Str == "" {
		t.Errorf("%d %s, want %d, %s, %s with %s", got.status, got.body, status, kind, code, words)
	}
	if told := got.header.Get("WWW-Authenticate"); told != challenge {
		t.Errorf("WWW-Authenticate is %q, want %q", told, challenge)
	}
	if got.header.Get("X-Request-Id") == "" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("header %v", got.header)
	}
}

func TestAccess_EveryRoute(t *testing.T) {
	t.Parallel()
	open := serve(t, nil)
	s := guarded(open)
	expired := s.expired()
	revoked, gone := s.token(node.Token{Scopes: node.Scopes})
	if got := s.with(revoked, "GET", "/v1/models", ""); got.status != 200 {
		t.Fatalf("before it was revoked: %d %s", got.status, got.body)
	}
	if err := s.node.RevokeToken(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	all, _ := s.token(node.Token{Scopes: []node.Scope{node.ScopeAdmin}})
	const unauthorized = `Bearer realm="lmcaddy"`
	for i := range routes {
		r := &routes[i]
		t.Run(r.method+" "+r.path, func(t *testing.T) {
			t.Parallel()
			open, s := *open, *s
			open.t, s.t = t, t
			path := r.example()
			body := ""
			if r.method == http.MethodPost || r.method == http.MethodPatch {
				body = "{}"
			}
			denied := map[string][]string{
				"no token":          nil,
				"nonsense":          {"Authorization", "Bearer hello"},
				"of another server": {"Authorization", "Bearer sk-lm-AAAAAAAA:AAAAAAAAAAAAAAAAAAAA"},
				"a wrong secret":    {"X-Api-Key", all[:len(all)-1] + "!"},
				"expired":           {"Authorization", "Bearer " + expired},
				"revoked":           {"Authorization", "Bearer " + revoked},
				"basic":             {"Authorization", "Basic " + all},
			}
			want := open.do(r.method, path, body) // what the endpoint itself says
			if r.scope == node.ScopeAdmin {
				wantDenied(t, path, want, 401, "invalid_api_key", unauthorized) // also where there is no authentication
				want = open.with(all, r.method, path, body)
			}
			if want.status == 401 || want.status == 403 {
				t.Fatalf("the endpoint itself: %d %s", want.status, want.body)
			}
			same := func(name string, got answer) {
				t.Helper()
				if got.status != want.status || got.code() != want.code() {
					t.Errorf("%s: %d %s, want %d %s", name, got.status, got.body, want.status, want.body)
				}
			}
			for name, header := range denied {
				got := s.do(r.method, path, body, header...)
				if r.scope == public {
					same(name, got)
					continue
				}
				wantDenied(t, path, got, 401, "invalid_api_key", unauthorized)
			}
			if r.scope == public {
				return
			}
			if r.scope != anyone {
				others := slices.DeleteFunc(slices.Clone(node.DefaultScopes), func(have node.Scope) bool { return have == r.scope })
				wrong, _ := s.token(node.Token{Scopes: others})
				wantDenied(t, path, s.with(wrong, r.method, path, body), 403, "missing_scope",
					`Bearer error="insufficient_scope", scope="`+string(r.scope)+`"`)
			}
			right := []node.Scope{r.scope}
			if r.scope == anyone {
				right = []node.Scope{node.ScopeMCPPlugin}
			}
			secret, _ := s.token(node.Token{Scopes: right})
			same("the right scope", s.with(secret, r.method, path, body))
			same("as an API key", s.do(r.method, path, body, "X-Api-Key", secret))
			same("in another case", s.do(r.method, path, body, "Authorization", "bearer  "+secret))
			same("beside an empty one", s.do(r.method, path, body, "Authorization", "Bearer ", "X-Api-Key", secret))
			same("admin", s.with(all, r.method, path, body))
		})
	}
}

func TestAccess_WhatIsNoEndpointTakesAnyToken(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	secret, _ := s.token(node.Token{Scopes: []node.Scope{node.ScopeMCPPlugin}})
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1/nope", 404}, {"GET", "/v1", 404}, {"POST", "/api/v1/nope", 404}, {"GET", "/api/v1/chat", 405}, {"PUT", "/v1/messages", 405},
		{"OPTIONS", "/v1/models", 405}, {"GET", "/api/v1/tokens/../health", 404}, {"GET", "/v1//models", 404}, {"GET", "/api/v1/Tokens", 404},
	} {
		wantDenied(t, tt.path, s.do(tt.method, tt.path, ""), 401, "invalid_api_key", `Bearer realm="lmcaddy"`)
		if got := s.with(secret, tt.method, tt.path, ""); got.status != tt.status {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, got.status, got.body)
		}
	}
	if got := s.with(secret, "HEAD", "/v1/models", ""); got.status != 403 || got.body != "" {
		t.Errorf("HEAD takes what GET takes: %d %s", got.status, got.body)
	}
}

// A handler between lm_auth and lm_api may rewrite a path. What was let through for a public one gets no further.
func TestAccess_APublicPathThatBecomesAnother(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := New(Config{Node: func(context.Context) (*node.Node, error) { return s.node, nil }, Log: slog.New(slog.DiscardHandler)})
	r, ok := a.Admit(httptest.NewRecorder(), httptest.NewRequest("GET", "/api/v1/health", nil), nil, "")
	if !ok {
		t.Fatal("it isn't public")
	}
	for path, status := range map[string]int{"/api/v1/models": 403, "/api/v1/tokens": 403, "/api/v1/health": 200} {
		r.URL.Path = path
		w := httptest.NewRecorder()
		if a.ServeHTTP(w, r); w.Code != status {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestAccess_WhileItIsOffAnyTokenIsIgnored(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, header := range [][]string{{"Authorization", "Bearer lm-studio"}, {"X-Api-Key", "dummy"}, {"Authorization", "Basic eA=="}} {
		if got := s.do("GET", "/v1/models", "", header...); got.status != 200 {
			t.Errorf("%v: %d %s", header, got.status, got.body)
		}
	}
}

func TestAccess_TrustedIdentities(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := New(Config{Node: func(context.Context) (*node.Node, error) { return s.node, nil }, Log: slog.New(slog.DiscardHandler)})
	ann := &node.Identity{Owner: "user:ann", Scopes: []node.Scope{node.ScopeModelsRead}}
	ask := func(header, value, path string) (int, *node.Identity) {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		admitted, ok := a.Admit(w, r, ann, "10.1.1.1")
		if !ok {
			return w.Code, nil
		}
		return 200, identity(admitted.Context())
	}
	secret, made := s.token(node.Token{})
	if status, who := ask("Authorization", "Basic eA==", "/v1/models"); status != 200 || who != ann {
		t.Errorf("%d, %+v", status, who)
	}
	if status, _ := ask("X-Other", "", "/api/v1/tokens"); status != 403 {
		t.Errorf("beyond their scopes: %d", status)
	}
	if status, who := ask("X-Api-Key", secret, "/v1/models"); status != 200 || who.Token != made.ID {
		t.Errorf("a token goes before: %d, %+v", status, who)
	}
	if status, _ := ask("X-Api-Key", "nonsense", "/v1/models"); status != 401 {
		t.Errorf("a wrong token, too: %d", status)
	}
}

func TestAccess_ChangesCountAtOnce(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	admin, _ := s.token(node.Token{Scopes: []node.Scope{node.ScopeAdmin}})
	made := s.with(admin, "POST", "/api/v1/tokens", `{"name":"x","scopes":["models.read","inference"],"models":["Other/*"],"limits":{"concurrent_requests":3},"expires_at":"2199-01-02T03:04:05Z"}`)
	got := gjson.Parse(made.body)
	for path, want := range map[string]string{
		"name": "x", "scopes": `["inference","models.read"]`, "models": `["other/*"]`, "limits": `{"concurrent_requests":3}`,
		"expires_at": "2199-01-02T03:04:05.000Z", "last_used_at": "",
	} {
		if got.Get(path).String() != want {
			t.Errorf("%s is %s, want %s", path, got.Get(path), want)
		}
	}
	if made.status != 201 || made.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", made.status, made.header)
	}
	secret, path := got.Get("token").Str, "/api/v1/tokens/"+got.Get("id").Str
	status := func(want int) {
		t.Helper()
		if got := s.with(secret, "GET", "/api/v1/models", ""); got.status != want {
			t.Errorf("%d %s, want %d", got.status, got.body, want)
		}
	}
	status(200)
	for _, step := range []struct {
		body   string
		status int
	}{
		{`{"scopes":["inference"]}`, 403}, {`{"scopes":["models.read"]}`, 200}, {`{"name":"y","limits":null,"models":[],"expires_at":null}`, 200},
	} {
		if got := s.with(admin, "PATCH", path, step.body); got.status != 200 || strings.Contains(got.body, `"token"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
		status(step.status)
	}
	list := s.with(admin, "GET", "/api/v1/tokens", "").body
	mine := gjson.Get(list, `tokens.#(name=="y")`)
	if mine.Get("limits").Raw != "{}" || mine.Get("models").Raw != "[]" || mine.Get("expires_at").Raw != "null" || strings.Contains(list, secret[15:]) {
		t.Errorf("%s", list)
	}
	if got := s.with(admin, "DELETE", path, ""); got.status != 200 || !gjson.Get(got.body, "revoked").Bool() {
		t.Errorf("%d %s", got.status, got.body)
	}
	status(401)
	for _, method := range []string{"PATCH", "DELETE"} {
		if got := s.with(admin, method, path, "{}"); got.status != 404 || got.code() != "token_not_found" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

func TestTokens_RefusesWhatMakesNone(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	admin, made := s.token(node.Token{Scopes: []node.Scope{node.ScopeAdmin}})
	for body, param := range map[string]string{
		`{}`: "name", `{"name":""}`: "name", `{"name":3}`: "name", `{"name":"a\u0000b"}`: "name", `{"name":"` + strings.Repeat("x", 300) + `"}`: "name",
		`{"name":"x","scopes":[]}`: "scopes", `{"name":"x","scopes":["all"]}`: "scopes", `{"name":"x","scopes":"admin"}`: "scopes", `{"name":"x","scopes":[1]}`: "scopes",
		`{"name":"x","models":["["]}`: "models", `{"name":"x","models":[""]}`: "models", `{"name":"x","expires_at":"soon"}`: "expires_at",
		`{"name":"x","expires_at":"2001-01-01T00:00:00Z"}`: "expires_at", `{"name":"x","expires_at":"2999-01-01T00:00:00Z"}`: "expires_at", `{"name":"x","expires_at":5}`: "expires_at",
		`{"name":"x","limits":5}`: "limits", `{"name":"x","limits":{"requests_per_minute":-1}}`: "limits.requests_per_minute",
		`{"name":"x","limits":{"tokens_per_day":1e300}}`: "limits.tokens_per_day", `{"name":"x","limits":{"concurrent_requests":1.5}}`: "limits.concurrent_requests",
	} {
		if got := s.with(admin, "POST", "/api/v1/tokens", body); got.status != 400 || gjson.Get(got.body, "error.param").Str != param {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	if got := gjson.Get(s.with(admin, "GET", "/api/v1/tokens", "").body, "tokens.#.id").Raw; got != `["`+made.ID+`"]` {
		t.Errorf("one of them was made: %s", got)
	}
}

func TestAccess_ModelsThatATokenMayNotUse(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *Config, settings *node.Settings) { settings.ListAll = true })
	withOthers(s)
	if got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat"}`); got.status != 200 {
		t.Fatal(got.body)
	}
	s = guarded(s)
	secret, _ := s.token(node.Token{Models: []string{"LMCADDY/tinyembed", "other/*"}})
	for path, want := range map[string]string{"/v1/models": "data.#.id", "/api/v0/models": "data.#.id", "/api/v1/models": "models.#.key"} {
		if got := s.with(secret, "GET", path, ""); gjson.Get(got.body, want).Raw != `["lmcaddy/tinyembed"]` {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	if got := s.with(secret, "GET", "/v1/models", "", "Anthropic-Version", "2023-06-01"); gjson.Get(got.body, "data.#.id").Raw != `["lmcaddy/tinyembed"]` {
		t.Errorf("%s", got.body)
	}
	const chat = `"messages":[{"role":"user","content":"hi"}],"max_tokens":5`
	for _, tt := range []struct{ method, path, body string }{
		{"POST", "/v1/chat/completions", `{"model":"tinychat",` + chat + `}`},
		{"POST", "/api/v0/chat/completions", `{"model":"lmcaddy/tinychat",` + chat + `}`},
		{"POST", "/v1/messages", `{"model":"tinychat",` + chat + `}`},
		{"POST", "/v1/messages/count_tokens", `{"model":"tinychat",` + chat + `}`},
		{"POST", "/v1/completions", `{"model":"tinychat","prompt":"x"}`},
		{"POST", "/v1/rerank", `{"model":"tinyrerank","query":"x","documents":["y"]}`},
		{"POST", "/api/v1/chat", `{"model":"tinychat","input":"hi"}`},
		{"POST", "/v1/embeddings", `{"model":"tinyembed","input":"x","draft_model":"tinychat"}`},
		{"POST", "/api/v1/models/load", `{"model":"tinyvision"}`},
		{"POST", "/api/v1/models/unload", `{"instance_id":"lmcaddy/tinychat"}`},
		{"DELETE", "/api/v1/models/lmcaddy/tinyvision", ""},
		{"GET", "/v1/models/lmcaddy/tinychat", ""},
		{"GET", "/api/v0/models/tinychat", ""},
	} {
		got := s.with(secret, tt.method, tt.path, tt.body)
		if got.status != 403 || !strings.Contains(got.body, "may not use the model") {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, got.status, got.body)
		}
	}
	got := s.with(secret, "POST", "/v1/embeddings", `{"model":"nope","input":"x"}`)
	if got.status != 404 || !strings.Contains(got.body, "tinyembed") || strings.Contains(got.body, "tinychat") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.with(secret, "POST", "/v1/embeddings", `{"model":"tinyembed","input":"x"}`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAccess_ConversationsBelongToTheirOwners(t *testing.T) {
	t.Parallel()
	open := serve(t, nil)
	s := guarded(open)
	ann, _ := s.token(node.Token{})
	bob, _ := s.token(node.Token{Scopes: node.Scopes})
	chat := func(secret, more string) answer {
		return s.with(secret, "POST", "/api/v1/chat", `{"model":"tinychat","input":"hi"`+more+`}`)
	}
	id := gjson.Get(chat(ann, "").body, "response_id").Str
	path, goOn := "/api/v1/responses/"+id, `,"previous_response_id":"`+id+`"`
	for name, got := range map[string]answer{
		"read": s.with(bob, "GET", path, ""), "delete": s.with(bob, "DELETE", path, ""), "continue": chat(bob, goOn),
		"anybody": open.do("GET", path, ""),
	} {
		if got.status != 404 {
			t.Errorf("another's: %s: %d %s", name, got.status, got.body)
		}
	}
	if got := chat(ann, goOn); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.with(ann, "DELETE", path, ""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Wrong tokens wait longer and longer, and nobody else does: not even a valid token from the same address.
func TestAccess_SlowingDownNeverTouchesAValidToken(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := New(Config{Node: func(context.Context) (*node.Node, error) { return s.node, nil }, Log: slog.New(slog.DiscardHandler)})
	secret, _ := s.token(node.Token{})
	over, end := context.WithCancel(t.Context())
	end()
	for range 20 {
		s.node.Failed(over, "10.2.2.2:7") // from now on each waits for seconds
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ask := func(token string) (status int) {
		r := httptest.NewRequest("GET", "/v1/models", nil).WithContext(ctx)
		r.Header.Set("X-Api-Key", token)
		w := httptest.NewRecorder()
		if _, ok := a.Admit(w, r, nil, "10.2.2.2:99"); ok {
			return 200
		}
		return w.Code
	}
	const tries = 30
	answered := make(chan int, tries)
	for range tries {
		go func() { answered <- ask("nonsense") }()
	}
	statuses := map[int]int{}
	for range tries - 8 { // those beyond the eight that may wait
		statuses[<-answered]++
	}
	if statuses[429] != tries-8 {
		t.Errorf("at once: %v", statuses)
	}
	for range 3 {
		if status := ask(secret); status != 200 {
			t.Errorf("the valid one: %d", status)
		}
	}
	if len(answered) > 0 {
		t.Error("those that have to wait were answered first")
	}
	cancel()
	for range 8 {
		<-answered
	}
}

func TestAccess_WhoUsesMayBeTold(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, &fakeengine.Script{}))
	secret, made := s.token(node.Token{})
	if got := s.with(secret, "GET", "/api/v1/settings", ""); !gjson.Get(got.body, "authentication").Bool() {
		t.Errorf("%s", got.body)
	}
	all, err := s.node.Tokens(t.Context())
	if err != nil || len(all) != 1 || all[0].ID != made.ID {
		t.Errorf("%v, %v", all, err)
	}
	s.with(secret, "GET", "/api/v1/usage", "") // writes down what was used
	if all, err = s.node.Tokens(t.Context()); err != nil || all[0].LastUsed.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
}
