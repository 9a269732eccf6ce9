package api

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/node/access"
)

func TestAccess_ChangesCountAtOnce(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
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
		{`{"scopes":["mcp.plugin"]}`, 403}, {`{"scopes":["models.read"]}`, 200}, {`{"scopes":["inference"]}`, 200}, {`{"name":"y","limits":null,"models":[],"expires_at":null}`, 200},
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
	admin, made := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	for body, param := range map[string]string{
		`{}`: "name", `{"name":""}`: "name", `{"name":3}`: "name", `{"name":"a\u0000b"}`: "name", `{"name":"` + strings.Repeat("x", 300) + `"}`: "name",
		`{"name":"x","scopes":[]}`: "scopes", `{"name":"x","scopes":["all"]}`: "scopes", `{"name":"x","scopes":"admin"}`: "scopes", `{"name":"x","scopes":[1]}`: "scopes",
		`{"name":"x","models":["a"` + strings.Repeat(`,"a"`, 1024) + `]}`: "models", `{"name":"x","scopes":[` + strings.Repeat(`1,`, 1<<20) + `1]}`: "scopes",
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
