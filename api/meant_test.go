package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/node/access"
)

func TestMeantPath(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"POST /v1/chat/completions":            "",
		"POST //v1/chat/completions":           "/v1/chat/completions",
		"POST /v1//chat/completions":           "/v1/chat/completions",
		"POST /v1/chat/completions/":           "/v1/chat/completions",
		"POST //v1///chat//completions//":      "/v1/chat/completions",
		"GET /v1/models/":                      "/v1/models",
		"HEAD /v1/models/":                     "/v1/models",
		"GET /v1/models/lmcaddy/tinychat/":     "", // slashes are a part of an id
		"GET /v1//models/lmcaddy/tinychat":     "/v1/models/lmcaddy/tinychat",
		"GET /api/tags/":                       "/api/tags",
		"POST //api/chat":                      "/api/chat",
		"POST /v1/messages/":                   "/v1/messages",
		"POST /v1/v1/chat/completions":         "/v1/chat/completions",
		"POST /v1/v1/v1//messages":             "/v1/messages",
		"GET /v1/v1/models":                    "/v1/models",
		"GET /v1/v1/models/a/b":                "/v1/models/a/b",
		"POST /api/v1/chat/completions":        "/v1/chat/completions",
		"POST /api/v1/v1/chat/completions":     "/v1/chat/completions",
		"POST /api/v1/embeddings":              "/v1/embeddings",
		"POST /api/v1/responses":               "/v1/responses",
		"POST /api/v1/responses/input_tokens":  "/v1/responses/input_tokens",
		"POST /api/v1/messages/count_tokens":   "/v1/messages/count_tokens",
		"GET /api/v1/v1/models":                "", // either list
		"POST /api/v1/v1/chat":                 "", // below /api/, nothing is reached by another path
		"POST /api/v1/v1/models/load":          "",
		"GET /v1/api/v1/tokens":                "", // what is open below /v1/ isn't a way to the rest
		"POST /v1/api/chat":                    "",
		"GET /v1/../api/v1/tokens":             "",
		"GET /v1/./models":                     "",
		"GET //nope//":                         "",
		"GET /v1//nope/":                       "/v1/nope",
		"GET //":                               "",
		"DELETE /api/v1/conversations/":        "", // all of them
		"DELETE /api/v1//conversations":        "/api/v1/conversations",
		"DELETE //v1/responses/resp_1":         "/v1/responses/resp_1",
		"DELETE /v1//responses/resp_1":         "/v1/responses/resp_1",
		"DELETE /v1/responses//resp_1":         "",
		"DELETE /v1/responses/resp_1/":         "",
		"DELETE /api/v1/warm/":                 "",
		"DELETE //api/v1/models//tinychat":     "",
		"DELETE //api/v1/models/lmcaddy/tiny":  "/api/v1/models/lmcaddy/tiny",
		"PATCH /api/v1/tokens/":                "/api/v1/tokens",
		"POST /api/v1/models/download//cancel": "/api/v1/models/download/cancel",
	} {
		method, path, _ := strings.Cut(asked, " ")
		if want == "" {
			want = path
		}
		if got := meantPath(method, path); got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
		if got := meantPath(method, want); got != want {
			t.Errorf("%s means %s, which means %s", asked, want, got)
		}
	}
}

// TestMeant_IsAnsweredAsTheEndpoint: without a redirect, in its dialect, and told of by its name.
func TestMeant_IsAnsweredAsTheEndpoint(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const messages = `"messages":[{"role":"user","content":"hi"}]}`
	for path, object := range map[string]string{
		"/v1//chat/completions": "chat.completion", "/v1/chat/completions/": "chat.completion", "/api/v1/chat/completions": "chat.completion",
		"/v1/v1/chat/completions": "chat.completion", "//api/v0/chat/completions": "chat.completion", "/v1/v1/messages/": `"type":"message"`, "/api//chat": `"done":true`,
	} {
		got := s.do("POST", path, `{"model":"tinychat","max_tokens":9,`+messages)
		if got.status != http.StatusOK || !strings.Contains(got.body, object) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		if requests := s.do("GET", "/api/v1/requests", "").body; strings.Contains(requests, `"`+path+`"`) {
			t.Errorf("%s is told of by that name: %s", path, requests)
		}
	}
	if got := s.do("POST", "/v1//messages", `{`); got.status != 400 || !strings.HasPrefix(got.body, `{"type":"error"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("GET", "/api/v1/chat/completions/", ""); got.status != 404 || !strings.Contains(got.body, "/v1/chat/completions") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestMeant_NeedsTheRightsOfTheEndpoint: a path with further slashes isn't a way around them.
func TestMeant_NeedsTheRightsOfTheEndpoint(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	infers, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeInference}})
	reads, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeModelsRead}})
	for _, tt := range []struct {
		token, method, path string
		status              int
	}{
		{infers, "GET", "//api//v1//tokens/", 403},
		{infers, "GET", "/api/v1/logs/", 403},
		{infers, "GET", "//api/v1/models/download/", 403},
		{infers, "POST", "/api//v1/models/load", 403},
		{reads, "POST", "/v1/v1/chat/completions", 403},
		{reads, "POST", "/api/v1/chat/completions", 403},
		{reads, "GET", "/v1/v1/models", 200},
		{infers, "GET", "/v1/api/v1/tokens", 404},
	} {
		if got := s.do(tt.method, tt.path, "{}"); got.status != 401 {
			t.Errorf("%s without a token: %d %s", tt.path, got.status, got.body)
		}
		if got := s.with(tt.token, tt.method, tt.path, "{}"); got.status != tt.status {
			t.Errorf("%s: %d %s, want %d", tt.path, got.status, got.body, tt.status)
		}
	}
	if got := s.do("GET", "//api/v1/health/", ""); got.status != 200 {
		t.Errorf("health is public: %d %s", got.status, got.body)
	}
}
