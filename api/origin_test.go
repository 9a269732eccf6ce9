package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/node"
)

// asked asks with a Host that may be another than where the server is.
func (s *server) asked(method, path, host string, header ...string) answer {
	s.t.Helper()
	if host != "" {
		header = append(header, "Host", host)
	}
	return s.do(method, path, "", header...)
}

func TestOrigin_ForeignPagesAreKeptOut(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(c *Config, _ *node.Settings) {
		c.CORS = []string{"https://app.example"}
		c.ServesHost = func(r *http.Request) bool { return r.Host == "models.example:1234" }
	})
	for _, tt := range []struct {
		host, origin string
		status       int
	}{
		{"", "", 200},
		{"localhost:1234", "", 200},
		{"192.168.1.7", "", 200},
		{"[::1]:1234", "", 200},
		{"my-pc.local", "", 200},
		{"my-pc", "", 200},
		{"models.example:1234", "", 200},
		{"rebound.example", "", 403},
		{"127.0.0.1.nip.io", "", 403},
		{"localhost.evil.example", "", 403},
		{"rebound.example", "http://rebound.example", 403},
		{"", "https://app.example", 200},
		{"", "https://app.example.evil.example", 403},
		{"", "http://app.example", 403},
		{"", "https://evil.example", 403},
		{"", "http://6.6.6.6", 403},
		{"", "http://192.168.1.66", 403},
		{"", "http://router.lan", 403},
		{"", "null", 403},
		{"", "http://", 403},
		{"", "http://localhost:3000", 200},
		{"", "http://[::1]:3000", 200},
		{"my-pc.local:1234", "http://my-pc.local:1234", 200},
		{"", "vscode-webview://abc", 200},
		{"", "chrome-extension://abc", 200},
	} {
		header := []string{}
		if tt.origin != "" {
			header = []string{"Origin", tt.origin}
		}
		for _, path := range []string{"/v1/models", "/api/v1/health"} {
			got := s.asked("GET", path, tt.host, header...)
			if got.status != tt.status || tt.status == 403 && got.code() != "foreign_origin" {
				t.Errorf("host %q, origin %q: %d %s", tt.host, tt.origin, got.status, got.body)
			}
		}
	}
}

// With a token, pages can't do anything that isn't meant: they'd have to know it.
func TestOrigin_WithATokenAnyHostWillDo(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	secret, _ := s.token(node.Token{})
	if got := s.asked("GET", "/v1/models", "models.example", "X-Api-Key", secret, "Origin", "https://other.example"); got.status != 200 || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	if got := s.asked("GET", "/api/v1/root.crt", "models.example"); got.status != 404 || got.code() != "no_root_certificate" {
		t.Errorf("what is public: %d %s", got.status, got.body)
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	const app = "https://app.example"
	allow := func(origins ...string) option {
		return func(c *Config, _ *node.Settings) { c.CORS = origins }
	}
	open := serve(t, nil, allow(app))
	closed, some, all := guarded(open), guarded(open, allow("https://other.example", app)), guarded(open, allow("*"))
	secret, _ := open.token(node.Token{})
	preflight := []string{
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type", "Access-Control-Request-Private-Network", "true",
	}
	for name, tt := range map[string]struct {
		s              *server
		method, origin string
		header         []string
		status         int
		allowed        string
	}{
		"preflight":                {some, "OPTIONS", app, preflight, 204, app},
		"preflight, open site":     {open, "OPTIONS", app, preflight, 204, app},
		"preflight, any origin":    {all, "OPTIONS", "https://x.example", preflight, 204, "https://x.example"},
		"preflight of another":     {some, "OPTIONS", "https://evil.example", preflight, 405, ""},
		"preflight, none allowed":  {closed, "OPTIONS", app, preflight, 405, ""},
		"no preflight":             {some, "OPTIONS", app, nil, 401, app},
		"with a token":             {some, "GET", app, []string{"Authorization", "Bearer " + secret}, 200, app},
		"of another with a token":  {some, "GET", "https://evil.example", []string{"Authorization", "Bearer " + secret}, 200, ""},
		"without a token":          {some, "GET", app, nil, 401, app}, // which the page may read
		"of another without":       {some, "GET", "https://evil.example", nil, 401, ""},
		"in another case":          {some, "GET", "https://APP.example", nil, 401, ""},
		"the open site's own page": {open, "GET", app, nil, 200, app},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := *tt.s
			s.t = t
			got := s.do(tt.method, "/v1/models", "", append([]string{"Origin", tt.origin}, tt.header...)...)
			h := got.header
			if got.status != tt.status || h.Get("Access-Control-Allow-Origin") != tt.allowed || h.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%d %v %s", got.status, h, got.body)
			}
			if (tt.s != closed) != strings.Contains(strings.Join(h.Values("Vary"), ","), "Origin") {
				t.Errorf("Vary: %v", h.Values("Vary"))
			}
			if tt.status == 204 && (h.Get("Access-Control-Allow-Headers") != "authorization,content-type" || h.Get("Access-Control-Allow-Private-Network") != "true" ||
				!strings.Contains(h.Get("Access-Control-Allow-Methods"), "DELETE") || h.Get("Access-Control-Max-Age") == "" || got.body != "") {
				t.Errorf("%v %s", h, got.body)
			}
			if tt.allowed != "" && tt.status != 204 && !strings.Contains(h.Get("Access-Control-Expose-Headers"), "X-Request-Id") {
				t.Errorf("%v", h)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(c *Config, settings *node.Settings) {
		c.CORS, c.MaxBody = []string{"https://app.example"}, 5000
		settings.Gates.PluginMCP, settings.Queue = true, 7
	})
	const want = `{"authentication":false,"allow":{"ephemeral_mcp":false,"plugin_mcp":true,"remote_mcp":false,"raw_grammar":false},"cors":["https://app.example"],` +
		`"max_body_bytes":5000,"jit":true,"idle_ttl_seconds":0,"max_loaded":0,"queue":7,"list_models":"loaded","reasoning_field":"reasoning"}`
	if got := s.do("GET", "/api/v1/settings", ""); got.body != want {
		t.Errorf("%s", got.body)
	}
	if got := s.do("GET", "/api/v1/health", ""); got.body != `{"status":"ok"}` {
		t.Errorf("%s", got.body)
	}
}

func TestRootCertificate(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil), func(c *Config, _ *node.Settings) {
		c.RootCertificate = func() ([]byte, error) { return []byte("-----BEGIN CERTIFICATE-----\n"), nil }
	})
	got := s.do("GET", "/api/v1/root.crt", "")
	if got.status != 200 || !strings.HasPrefix(got.body, "-----BEGIN") || got.header.Get("Content-Type") != "application/x-x509-ca-cert" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	if got := s.do("HEAD", "/api/v1/root.crt", ""); got.status != 200 || got.body != "" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
