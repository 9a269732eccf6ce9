package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/web"
)

func withPage(c *endpoint.Config, _ *node.Settings) { c.Root = Root{Page: true} }

func TestPage(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, withPage)
	page := web.Get()
	plain := `"` + page.Digest + `"`
	for name, tt := range map[string]struct {
		method, path string
		header       []string
		status       int
		body, coding string
	}{
		"plain":                 {"GET", "/", []string{"Accept-Encoding", "identity"}, 200, string(page.Plain), ""},
		"gzip":                  {"GET", "/", []string{"Accept-Encoding", "gzip, deflate, br"}, 200, string(page.Gzip), "gzip"},
		"zstd":                  {"GET", "/", []string{"Accept-Encoding", "gzip, zstd"}, 200, string(page.Zstd), "zstd"},
		"zstd is refused":       {"GET", "/", []string{"Accept-Encoding", "gzip;q=0.5, zstd;q=0"}, 200, string(page.Gzip), "gzip"},
		"HEAD":                  {"HEAD", "/", []string{"Accept-Encoding", "gzip"}, 200, "", "gzip"},
		"known":                 {"GET", "/", []string{"Accept-Encoding", "identity", "If-None-Match", `"x", W/` + plain}, 304, "", ""},
		"known in another form": {"GET", "/", []string{"If-None-Match", plain, "Accept-Encoding", "gzip"}, 200, string(page.Gzip), "gzip"},
		"a query":               {"GET", "/?a=1", []string{"Accept-Encoding", "br"}, 200, string(page.Plain), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.do(tt.method, tt.path, "", append(tt.header, "Host", "evil.example")...)
			if got.status != tt.status || got.body != tt.body || got.header.Get("Content-Encoding") != tt.coding {
				t.Fatalf("%d %v, %d bytes", got.status, got.header, len(got.body))
			}
			for _, name := range []string{
				"Content-Security-Policy", "Cross-Origin-Opener-Policy", "Etag", "Permissions-Policy", "Referrer-Policy",
				"X-Content-Type-Options", "X-Frame-Options", "Cache-Control", "Vary",
			} {
				if got.header.Get(name) == "" {
					t.Errorf("no %s", name)
				}
			}
		})
	}
	part := s.do("GET", "/page/math.js", "", "Accept-Encoding", "gzip")
	if part.status != 200 || part.body != string(web.Part("/page/math.js").Gzip) || part.header.Get("Content-Type") != "text/javascript; charset=utf-8" || part.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v", part.status, part.header)
	}
	manifest := s.do("GET", "/page/manifest.json", "", "Accept-Encoding", "identity")
	if icon := gjson.Get(manifest.body, "icons.0.src").Str; manifest.header.Get("Content-Type") != "application/manifest+json" || s.do("GET", icon, "").header.Get("Content-Type") != "image/svg+xml" {
		t.Errorf("%v %s", manifest.header, manifest.body)
	}
	for _, request := range []string{"POST /", "DELETE /", "GET //", "GET /index.html", "POST /page/math.js", "GET /page/", "GET /page/index.html"} {
		method, path, _ := strings.Cut(request, " ")
		if got := s.do(method, path, ""); got.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", request, got.status, got.body)
		}
	}
}

// TestSettings_Identity: a page learns what its token allows, also where requests need none.
func TestSettings_Identity(t *testing.T) {
	t.Parallel()
	open := serve(t, nil)
	if got := open.do("GET", "/api/v1/settings", "", "Authorization", "Bearer sk-lm-wrong"); got.status != 200 || gjson.Get(got.body, "identity").Raw != "null" {
		t.Errorf("%d %s", got.status, got.body)
	}
	secret, _ := open.token(access.Token{Name: "reader", Scopes: []access.Scope{access.ScopeModelsRead}, Models: []string{"a/*"}})
	const want = `{"name":"reader","scopes":["models.read"],"models":["a/*"]}`
	for name, s := range map[string]*server{"open": open, "guarded": guarded(open)} {
		if got := s.with(secret, "GET", "/api/v1/settings", ""); gjson.Get(got.body, "identity").Raw != want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// TestRoot_Ollama: browsers get the page, and all others Ollama's greeting.
func TestRoot_Ollama(t *testing.T) {
	t.Parallel()
	const html, greeting = "text/html,application/xhtml+xml,*/*;q=0.8", "Ollama is running"
	for _, tt := range []struct {
		root   Root
		method string
		accept string
		want   string // a part
		status int
	}{
		{Root{Page: true, Ollama: true}, "GET", html, "<html", 200},
		{Root{Page: true, Ollama: true}, "GET", "*/*", greeting, 200},
		{Root{Page: true, Ollama: true}, "GET", "application/json", greeting, 200},
		{Root{Ollama: true}, "GET", html, greeting, 200},
		{Root{Ollama: true}, "HEAD", "", "", 200},
		{Root{Ollama: true}, "POST", "", "Unexpected endpoint", 404},
		{Root{}, "GET", "", "Unexpected endpoint", 404},
	} {
		s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.Root = tt.root })
		got := s.do(tt.method, "/", "", "Accept", tt.accept, "Accept-Encoding", "identity")
		if got.status != tt.status || !strings.Contains(got.body, tt.want) || tt.root.Ollama && tt.status == 200 && !slices.Contains(got.header.Values("Vary"), "Accept") {
			t.Errorf("%+v, %s, %s: %d %.100s %v", tt.root, tt.method, tt.accept, got.status, got.body, got.header)
		}
	}
}
