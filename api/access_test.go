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

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/llama"
	"github.com/lmcaddy/lmcaddy/api/ollama"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
)

// guarded is the same node on a site with authentication. Each request is from an address of its own, so that none is
// slowed down for another's wrong token.
func guarded(s *server, options ...option) *server {
	s.t.Helper()
	config := endpoint.Config{Node: func(context.Context) (*node.Node, error) { return s.node, nil }, Log: slog.New(slog.DiscardHandler)}
	for _, o := range options {
		o(&config, new(node.Settings))
	}
	behind := New(config)
	gate := New(endpoint.Config{Node: config.Node, Log: config.Log, CORSOf: func(*http.Request) []string { return config.CORS }})
	var n atomic.Int32
	g := *s
	g.Server = httptest.NewServer(checked(s.t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if admitted, ok := gate.Admit(w, r, nil, fmt.Sprintf("10.0.%d.%d:1", n.Load()/250, n.Add(1)%250)); ok {
			behind.ServeHTTP(w, admitted)
		}
	})))
	s.t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
	})
	return &g
}

// token makes a token; with no scopes it has the default ones.
func (s *server) token(t access.Token) (secret string, _ access.Token) {
	s.t.Helper()
	if t.Name == "" {
		t.Name = "of a test"
	}
	if t.Scopes == nil {
		t.Scopes = access.DefaultScopes
	}
	secret, t, err := s.node.Access.Tokens.Create(s.t.Context(), t)
	if err != nil {
		s.t.Fatal(err)
	}
	return secret, t
}

func (s *server) expired() string {
	s.t.Helper()
	secret, made := s.token(access.Token{Scopes: access.Scopes})
	if err := s.expire(made); err != nil {
		s.t.Fatal(err)
	}
	return secret
}

// expire changes a token in the store to one that has expired, which a node refuses to do.
func (s *server) expire(t access.Token) error {
	return s.node.Stores.Get().UpdateToken(s.t.Context(), store.Token{
		ID: t.ID, Name: t.Name, Rights: json.RawMessage(`{"scopes":["admin"]}`), Expires: time.Now().Add(-time.Second),
	})
}

// with asks with a token.
func (s *server) with(secret, method, path, body string, header ...string) answer {
	s.t.Helper()
	return s.do(method, path, body, append(header, "Authorization", "Bearer "+secret)...)
}

// example is a path that a route fits.
func example(r *endpoint.Route) string {
	path := strings.Replace(r.Path, "*", "0123456789", 1)
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
	case strings.HasPrefix(path, "/v1"), llama.Dialect.Owns(httptest.NewRequest(http.MethodGet, path, nil)):
		kind, words = "invalid_request_error", "message type param code"
	}
	var keys []string
	e.ForEach(func(key, _ gjson.Result) bool {
		keys = append(keys, key.Str)
		return true
	})
	isText := ollama.Dialect.Owns(httptest.NewRequest(http.MethodGet, path, nil)) && e.Str != "" && len(body.Map()) == 1 && got.status == status
	if !isText && (strings.Join(keys, " ") != words || got.status != status || e.Get("type").Str != kind || e.Get("code").Str != code || e.Get("message").Str == "") {
		t.Errorf("%d %s, want %d, %s, %s with %s", got.status, got.body, status, kind, code, words)
	}
	if told := got.header.Get("WWW-Authenticate"); told != challenge {
		t.Errorf("WWW-Authenticate is %q, want %q", told, challenge)
	}
	if got.header.Get("X-Request-Id") == "" || got.header.Get("Content-Type") != endpoint.TypeJSON {
		t.Errorf("header %v", got.header)
	}
}

func TestAccess_EveryRoute(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	close(ended) // streams of events end at once
	exiting := func(c *endpoint.Config, _ *node.Settings) { c.Exiting = ended }
	open := serve(t, nil, withMCP, exiting)
	s := guarded(open, exiting)
	expired := s.expired()
	revoked, gone := s.token(access.Token{Scopes: access.Scopes})
	if got := s.with(revoked, "GET", "/v1/models", ""); got.status != 200 {
		t.Fatalf("before it was revoked: %d %s", got.status, got.body)
	}
	if err := s.node.Access.Tokens.Revoke(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	all, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	const unauthorized = `Bearer realm="lmcaddy"`
	for i := range routes {
		r := &routes[i]
		t.Run(r.Method+" "+r.Path, func(t *testing.T) {
			t.Parallel()
			open, s := *open, *s
			open.t, s.t = t, t
			path := example(r)
			body := ""
			if r.Method == http.MethodPost || r.Method == http.MethodPatch {
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
			want := open.do(r.Method, path, body) // what the endpoint itself says
			if r.Scope == access.ScopeAdmin || r.Scope == access.ScopeMCPPlugin {
				wantDenied(t, path, want, 401, "invalid_api_key", unauthorized) // also where there is no authentication
				want = open.with(all, r.Method, path, body)
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
				got := s.do(r.Method, path, body, header...)
				if r.Scope == endpoint.Public {
					same(name, got)
					continue
				}
				wantDenied(t, path, got, 401, "invalid_api_key", unauthorized)
			}
			if r.Scope == endpoint.Public {
				return
			}
			if r.Scope != endpoint.Anyone {
				wrong, _ := s.token(access.Token{Scopes: slices.DeleteFunc(slices.Clone(access.DefaultScopes), func(have access.Scope) bool {
					return have == r.Scope || r.Scope == access.ScopeModelsList && (have == access.ScopeModelsRead || have == access.ScopeInference)
				})})
				named := r.Scope
				if named == access.ScopeModelsList {
					named = access.ScopeInference
				}
				wantDenied(t, path, s.with(wrong, r.Method, path, body), 403, "missing_scope",
					`Bearer error="insufficient_scope", scope="`+string(named)+`"`)
			}
			right := []access.Scope{r.Scope}
			switch r.Scope {
			case endpoint.Anyone:
				right = []access.Scope{access.ScopeMCPPlugin}
			case access.ScopeModelsList: // either is enough
				reader, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeModelsRead}})
				same("who may read about models", s.with(reader, r.Method, path, body))
				right = []access.Scope{access.ScopeInference}
			}
			secret, _ := s.token(access.Token{Scopes: right})
			same("the right scope", s.with(secret, r.Method, path, body))
			same("as an API key", s.do(r.Method, path, body, "X-Api-Key", secret))
			same("in another case", s.do(r.Method, path, body, "Authorization", "bearer  "+secret))
			same("beside an empty one", s.do(r.Method, path, body, "Authorization", "Bearer ", "X-Api-Key", secret))
			same("admin", s.with(all, r.Method, path, body))
		})
	}
}

func TestAccess_WhatIsNoEndpointTakesAnyToken(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	secret, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeMCPPlugin}})
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1/nope", 404},
		{"GET", "/v1", 404},
		{"POST", "/api/v1/nope", 404},
		{"GET", "/api/v1/chat", 405},
		{"PUT", "/v1/messages", 405},
		{"OPTIONS", "/v1/models", 405},
		{"GET", "/api/v1/tokens/../health", 404},
		{"GET", "/v1//models", 403},
		{"GET", "/api/v1/Tokens", 404},
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
	a := New(endpoint.Config{Node: func(context.Context) (*node.Node, error) { return s.node, nil }, Log: slog.New(slog.DiscardHandler)})
	r, ok := a.Admit(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/v1/health", nil), nil, "")
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
	a := New(endpoint.Config{Node: func(context.Context) (*node.Node, error) { return s.node, nil }, Log: slog.New(slog.DiscardHandler)})
	ann := &access.Identity{Owner: "user:ann", Scopes: []access.Scope{access.ScopeModelsRead}}
	ask := func(header, value, path string) (int, *access.Identity) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		admitted, ok := a.Admit(w, r, ann, "10.1.1.1")
		if !ok {
			return w.Code, nil
		}
		return 200, endpoint.IdentityOf(admitted.Context())
	}
	secret, made := s.token(access.Token{})
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

// Wrong tokens wait longer and longer, and nobody else does: not even a valid token from the same address.
func TestAccess_SlowingDownNeverTouchesAValidToken(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	a := New(endpoint.Config{Node: func(context.Context) (*node.Node, error) { return s.node, nil }, Log: slog.New(slog.DiscardHandler)})
	secret, _ := s.token(access.Token{})
	over, end := context.WithCancel(t.Context())
	end()
	for range 20 {
		s.node.Access.Failures.Add(over, "10.2.2.2:7") // from now on each waits for seconds
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ask := func(token string) (status int) {
		r := httptest.NewRequest(http.MethodGet, "/v1/models", nil).WithContext(ctx)
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
	secret, made := s.token(access.Token{})
	if got := s.with(secret, "GET", "/api/v1/settings", ""); !gjson.Get(got.body, "authentication").Bool() {
		t.Errorf("%s", got.body)
	}
	all, err := s.node.Access.Tokens.List(t.Context())
	if err != nil || len(all) != 1 || all[0].ID != made.ID || all[0].LastUsed.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
}

// docs/recipes/lan.md says what guests may do.
func TestAccess_WhatAGuestMayDo(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	guest, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeInference}})
	for _, test := range []struct {
		method, path string
		may          bool
	}{
		{"GET", "/v1/models", true},
		{"GET", "/api/tags", true},
		{"GET", "/api/ps", true},
		{"GET", "/api/v1/models", true},
		{"GET", "/api/v1/conversations", true},
		{"POST", "/v1/chat/completions", true},
		{"GET", "/api/v1/ps", false},
		{"GET", "/api/v1/events", false},
		{"POST", "/api/v1/models/load", false},
		{"POST", "/api/v1/models/unload", false},
		{"POST", "/api/v1/models/download", false},
		{"POST", "/api/pull", false},
		{"DELETE", "/api/delete", false},
		{"GET", "/api/v1/tokens", false},
		{"GET", "/api/v1/logs", false},
	} {
		if got := s.with(guest, test.method, test.path, "{}"); (got.status != 401 && got.status != 403) != test.may {
			t.Errorf("%s %s: %d %s", test.method, test.path, got.status, got.body)
		}
	}
}
