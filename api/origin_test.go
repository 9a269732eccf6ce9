package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/machine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
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
	s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) {
		c.CORS = []string{"https://app.example", "app://obsidian.md"}
		c.Hosts = []string{"server.lan", "203.0.113.7"}
		c.ServesHost = func(r *http.Request) bool { return r.Host == "models.example:1234" }
	})
	for _, tt := range []struct {
		host, origin, site string // site: Sec-Fetch-Site
		status             int
	}{
		{"", "", "", 200},
		{"localhost:1234", "", "", 200},
		{"LOCALHOST.:1234", "", "", 200},
		{"app.localhost", "", "", 200},
		{"127.0.0.2:1234", "", "", 200},
		{"[::1]:1234", "", "", 200},
		{"[::1]", "", "", 200},
		{machine.Hostname() + ":1234", "", "", 200},
		{"server.lan:1234", "", "", 200},
		{"203.0.113.7", "", "", 200},
		{"models.example:1234", "", "", 200},
		{"192.168.1.7", "", "", 403}, // it isn't where the request came in
		{"my-pc.local", "", "", 403},
		{"my-pc", "", "", 403},
		{"other.lan", "", "", 403},
		{"my-pc.local:1234", "http://my-pc.local:1234", "", 403},
		{"my-pc:1234", "http://my-pc:1234", "same-origin", 403},
		{"rebound.example", "", "", 403},
		{"127.0.0.1.nip.io", "", "", 403},
		{"localhost.evil.example", "", "", 403},
		{"rebound.example", "http://rebound.example", "", 403},
		{"rebound.example", "http://rebound.example", "same-origin", 403},
		{"", "https://app.example", "", 200},
		{"", "https://app.example", "cross-site", 200},
		{"", "https://app.example.evil.example", "", 403},
		{"", "http://app.example", "", 403},
		{"", "https://evil.example", "", 403},
		{"", "http://6.6.6.6", "", 403},
		{"", "http://192.168.1.66", "", 403},
		{"", "http://router.lan", "", 403},
		{"", "http://", "", 403},
		{"", "http://localhost:3000", "", 200},
		{"", "http://[::1]:3000", "", 200},
		{"", "http://localhost:3000", "same-site", 403},
		{"", "http://localhost:3000", "cross-site", 403},
		{"", "", "cross-site", 403},
		{"", "", "same-site", 403},
		{"", "", "same-origin", 200},
		{"", "", "none", 200},
		{"", "null", "", 403},
		{"", "null", "same-origin", 403},
		{"", "file://", "", 403},
		{"", "vscode-webview://abc", "", 403},
		{"", "chrome-extension://abc", "none", 403},
		{"", "app://obsidian.md", "cross-site", 200},
		{"", "app://obsidian.md.evil", "", 403},
	} {
		for _, path := range []string{"/v1/models", "/api/v1/health"} {
			got := s.asked("GET", path, tt.host, "Origin", tt.origin, "Sec-Fetch-Site", tt.site)
			if got.status != tt.status || tt.status == 403 && got.code() != "foreign_origin" {
				t.Errorf("host %q, origin %q, site %q: %d %s", tt.host, tt.origin, tt.site, got.status, got.body)
			}
		}
	}
}

// A listener that other machines can reach is asked for by what this machine is called there.
func TestOrigin_HostsOnTheNetwork(t *testing.T) {
	t.Parallel()
	own := ownAddress(t)
	a := New(endpoint.Config{Node: serve(t, nil).nodeOf, Log: slog.New(slog.DiscardHandler), Hosts: []string{"server.lan"}})
	names := machine.Names()
	for _, tt := range []struct {
		at, host string
		status   int
	}{
		{"192.0.2.1:1234", "127.0.0.1:1234", 200},
		{"192.0.2.1:1234", net.JoinHostPort(own, "1234"), 200},
		{"192.0.2.1:1234", "server.lan", 200},
		{"192.0.2.1:1234", names[len(names)-1], 200},
		{"192.0.2.1:1234", "192.0.2.1", 403}, // no interface has it
		{"192.0.2.1:1234", "my-pc.local", 403},
		{"192.0.2.1:1234", "rebound.example", 403},
		{"127.0.0.1:1234", strings.Split(machine.Hostname(), ".")[0] + ".local", 403},
		{"[::ffff:127.0.0.1]:1234", strings.Split(machine.Hostname(), ".")[0] + ".local", 403},
		{"[2001:db8::1]:1234", "server.lan", 200},
		{"[2001:db8::1]:1234", "[2001:db8::1]:1234", 403},
	} {
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(tt.at)))
		r := httptest.NewRequest(http.MethodGet, "/v1/models", nil).WithContext(ctx)
		r.Host = tt.host
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("at %s, host %q: %d %s", tt.at, tt.host, w.Code, w.Body)
		}
	}
}

// ownAddress is one of this machine's, not of loopback if it has another.
func ownAddress(t *testing.T) string {
	t.Helper()
	own := "127.0.0.1"
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip := netip.MustParsePrefix(a.String()).Addr(); !ip.IsLoopback() && !ip.IsLinkLocalUnicast() {
			own = ip.String()
		}
	}
	return own
}

// A browser sends what basic authentication, client certificates and their like take by itself, whoever made the request.
func TestOrigin_WhatABrowserSendsByItself(t *testing.T) {
	t.Parallel()
	open := serve(t, nil)
	secret, _ := open.token(access.Token{})
	ann := &access.Identity{Owner: "user:ann", Name: "ann", Scopes: access.DefaultScopes}
	for name, tt := range map[string]struct {
		origin, site, token string
		cors                []string
		status              int
	}{
		"no browser":                    {status: 200},
		"her own page":                  {origin: "http://models.example", status: 200},
		"her own page, in any words":    {origin: "http://other.example", site: "same-origin", status: 200},
		"typed by her":                  {site: "none", status: 200},
		"another page":                  {origin: "https://evil.example", status: 403},
		"another page's image":          {site: "cross-site", status: 403},
		"a sister site":                 {origin: "http://other.models.example", site: "same-site", status: 403},
		"her own page on another port":  {origin: "http://models.example:8080", status: 403},
		"a page of her machine":         {origin: "http://localhost:3000", status: 403},
		"a sandbox":                     {origin: "null", status: 403},
		"an allowed page":               {origin: "https://app.example", site: "cross-site", cors: []string{"https://app.example"}, status: 200},
		"an allowed app":                {origin: "tauri://localhost", cors: []string{"tauri://localhost"}, status: 200},
		"any page, but with her rights": {origin: "https://evil.example", cors: []string{"*"}, status: 403},
		"another page that has a token": {origin: "https://evil.example", site: "cross-site", token: "Bearer " + secret, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := New(endpoint.Config{Node: open.nodeOf, Log: slog.New(slog.DiscardHandler), CORS: tt.cors})
			r := httptest.NewRequest(http.MethodGet, "http://models.example/v1/models", nil)
			for key, value := range map[string]string{"Origin": tt.origin, "Sec-Fetch-Site": tt.site, "Authorization": tt.token} {
				if value != "" {
					r.Header.Set(key, value)
				}
			}
			w := httptest.NewRecorder()
			if r, ok := a.Admit(w, r, ann, "192.0.2.1"); ok {
				a.ServeHTTP(w, r)
			}
			if w.Code != tt.status || tt.status == 403 && !strings.Contains(w.Body.String(), "foreign_origin") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// Who connects to the home's socket is no web page, whatever it sends.
func TestOrigin_TheSocketIsExempt(t *testing.T) {
	t.Parallel()
	a := New(endpoint.Config{Node: serve(t, nil).nodeOf, Log: slog.New(slog.DiscardHandler)})
	r := httptest.NewRequest(http.MethodGet, "http://lmcaddy/v1/models", nil)
	r.Header.Set("Origin", "null")
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r.WithContext(endpoint.WithIdentity(t.Context(), access.Local)))
	if w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// nodeOf gives the server's node to another API.
func (s *server) nodeOf(context.Context) (*node.Node, error) { return s.node, nil }

// With a token, pages can't do anything that isn't meant: they'd have to know it.
func TestOrigin_WithATokenAnyHostWillDo(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	secret, _ := s.token(access.Token{})
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
		return func(c *endpoint.Config, _ *node.Settings) { c.CORS = origins }
	}
	open := serve(t, nil, allow(app))
	closed, some, all := guarded(open), guarded(open, allow("https://other.example", app)), guarded(open, allow("*"))
	secret, _ := open.token(access.Token{})
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
	s := serve(t, nil, func(c *endpoint.Config, settings *node.Settings) {
		c.CORS, c.MaxBody = []string{"https://app.example"}, 5000
		settings.Gates.PluginMCP, settings.Queue = true, 7
	})
	want := `{"authentication":false,"allow":{"ephemeral_mcp":false,"plugin_mcp":true,"remote_mcp":false,"raw_grammar":false},"cors":["https://app.example"],` +
		`"max_body_bytes":5000,"jit":true,"idle_ttl_seconds":0,"max_loaded":0,"queue":7,"list_models":"loaded","reasoning_field":"reasoning","version":"","id":"` + s.node.ID() + `","presets":[],"identity":null}`
	if got := s.do("GET", "/api/v1/settings", ""); got.body != want {
		t.Errorf("%s", got.body)
	}
	if got := s.do("GET", "/api/v1/health", ""); got.body != `{"status":"ok"}` {
		t.Errorf("%s", got.body)
	}
}

func TestRootCertificate(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil), func(c *endpoint.Config, _ *node.Settings) {
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
