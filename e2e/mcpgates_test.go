package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// gated is a plain site without authentication and one with it.
type gated struct {
	*harness.Server
	authenticated *harness.Server
}

func startGated(t *testing.T, options ...string) gated {
	t.Helper()
	h := harness.NewHome(t)
	h.WriteMCP(harness.Fields{"one": faulty(h, "none")})
	plain, port := harness.FreePort(t), harness.FreePort(t)
	config := harness.Config{Port: plain, LM: options}.String() + fmt.Sprintf("\nhttp://:%d {\n\tbind 127.0.0.1\n\tlm_auth\n\tlm_api\n}\n", port)
	s := h.Launch(plain, "run", "--config", h.WriteFile("Caddyfile", config))
	return gated{s, s.On(port)}
}

// TestMCPGates_Plugin: the servers of mcp.json need an open gate and a token with a scope, on any site.
func TestMCPGates_Plugin(t *testing.T) {
	t.Parallel()
	open, closed := startGated(t, openGates...), startGated(t, "allow ephemeral_mcp")
	ask := withTools(useStatus, "mcp/one")
	for _, tt := range []struct {
		name    string
		site    gated
		scopes  string // of the token; empty: none, "default": those of a token by default
		status  int
		message string
	}{
		{"no token", open, "", http.StatusUnauthorized, "Authorization"},
		{"a token", open, "default", http.StatusOK, ""},
		{"a token with the scope", open, "inference,mcp.plugin", http.StatusOK, ""},
		{"a token without the scope", open, "inference,mcp.ephemeral", http.StatusForbidden, "mcp.plugin"},
		{"a closed gate", closed, "default", http.StatusForbidden, "allow plugin_mcp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sites := map[string]*harness.Server{"plain": tt.site.In(t), "authenticated": tt.site.authenticated.In(t)}
			token := ""
			switch tt.scopes {
			case "":
			case "default":
				token = created(t, tt.site.Home, "--name", tt.name)
			default:
				token = created(t, tt.site.Home, "--name", tt.name, "--scopes", tt.scopes)
			}
			for name, s := range sites {
				for _, isStream := range []bool{false, true} {
					r := s.As(token).Post(harness.NativeChatPath, ask.With("stream", isStream))
					if r.Status != tt.status || !strings.Contains(r.Body, tt.message) {
						t.Errorf("%s site, stream %v: status %d, want %d and %q: %s", name, isStream, r.Status, tt.status, tt.message, r.Body)
					}
					if tt.status != http.StatusOK {
						wantNativeError(t, r, "invalid_request")
					}
				}
			}
		})
	}
	if servers := closed.MCPServers(); len(servers) > 0 {
		t.Errorf("behind a closed gate a server was started: %v", servers)
	}

	// A key in another header isn't a token in Authorization.
	token := created(t, open.Home, "--name", "in another header")
	for name, s := range map[string]*harness.Server{"plain": open.Server, "authenticated": open.authenticated} {
		if r := s.PostWith(http.Header{"X-Api-Key": {token}}, harness.NativeChatPath, ask); r.Status != http.StatusUnauthorized {
			t.Errorf("x-api-key on the %s site: status %d: %s", name, r.Status, r.Body)
		}
	}
	for _, bad := range []string{"sk-lm-aaaaaaaa:bbbbbbbbbbbbbbbbbbbb", token[:len(token)-1] + "?"} {
		if r := open.As(bad).Post(harness.NativeChatPath, ask); r.Status != http.StatusUnauthorized {
			t.Errorf("an invalid token: status %d: %s", r.Status, r.Body)
		}
	}
}

func TestMCPGates_Ephemeral(t *testing.T) {
	t.Parallel()
	m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	ask := withTools(useStatus, m.Ephemeral("river"))
	open, closed, public := startGated(t, openGates...), startGated(t, "allow plugin_mcp", "mcp_private_hosts 127.0.0.1"), startGated(t, "allow ephemeral_mcp")
	for _, tt := range []struct {
		name    string
		site    *harness.Server
		scopes  string // of the token; empty: none
		status  int
		kind    string
		message string
	}{
		{"no token, where none is needed", open.Server, "", http.StatusOK, "", ""},
		{"a token", open.authenticated, "inference,mcp.ephemeral", http.StatusOK, "", ""},
		{"a token without the scope", open.authenticated, "inference,mcp.plugin", http.StatusForbidden, "invalid_request", "mcp.ephemeral"},
		{"a closed gate", closed.Server, "", http.StatusForbidden, "invalid_request", "allow ephemeral_mcp"},
		{"a private address", public.Server, "", http.StatusBadRequest, "mcp_connection_error", "mcp_private_hosts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.site.In(t)
			if tt.scopes != "" {
				s = s.As(created(t, s.Home, "--name", tt.name, "--scopes", tt.scopes))
			}
			before := len(m.Requests())
			r := s.Post(harness.NativeChatPath, ask)
			if r.Status != tt.status || !strings.Contains(r.Body, tt.message) {
				t.Fatalf("status %d, want %d and %q: %s", r.Status, tt.status, tt.message, r.Body)
			}
			if tt.status == http.StatusOK {
				wantRiver(t, r.Get("@this"), "status", ephemeral("river"))
				return
			}
			wantNativeError(t, r, tt.kind)
			if after := len(m.Requests()); after != before {
				t.Errorf("the server got %d requests", after-before)
			}
		})
	}
}

// The addresses that an ephemeral server must not have, and what else can be wrong with its URL.
func TestMCPGates_AddressesOfEphemeralServers(t *testing.T) {
	t.Parallel()
	m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(m.URL, "http://"), "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	s := harness.Start(harness.NewHome(t), harness.Config{LM: []string{"allow ephemeral_mcp", "mcp_private_hosts 127.0.0.9"}})
	const nonPublic = "URL resolves to a non-public address. We only allow public addresses for dynamic remote MCP connections."
	for url, message := range map[string]string{
		"http://127.0.0.1:" + port + "/mcp":              nonPublic,
		"http://127.0.0.2:" + port + "/mcp":              nonPublic,
		"http://localhost:" + port + "/mcp":              nonPublic,
		"http://LOCALHOST.:" + port + "/mcp":             "", // which not every resolver knows
		"http://[::1]:" + port + "/mcp":                  nonPublic,
		"http://[::ffff:127.0.0.1]:" + port + "/mcp":     nonPublic,
		"http://[64:ff9b::7f00:1]:" + port + "/mcp":      nonPublic,
		"http://0.0.0.0:" + port + "/mcp":                nonPublic,
		"http://[::]:" + port + "/mcp":                   nonPublic,
		"http://2130706433:" + port + "/mcp":             "", // as some resolvers read it
		"http://0x7f.1:" + port + "/mcp":                 "",
		"http://169.254.169.254/latest/meta-data":        nonPublic,
		"http://10.1.2.3:" + port + "/mcp":               nonPublic,
		"http://100.64.0.1:" + port + "/mcp":             nonPublic,
		"http://user:hunter2@127.0.0.1:" + port + "/mcp": "",
		"file:///etc/passwd":                             "",
		"ftp://127.0.0.1/mcp":                            "",
		"unix:///run/lmcaddy.sock":                       "",
		"http://":                                        "",
		"http://127.0.0.1:port/mcp":                      "",
		"not a URL":                                      "",
		"/mcp":                                           "",
	} {
		t.Run(url, func(t *testing.T) {
			r := s.In(t).Post(harness.NativeChatPath, withTools(useStatus, harness.Ephemeral("x", url))).Want(t, http.StatusBadRequest)
			if kind := r.Get("error.type").Str; message != "" && kind != "mcp_connection_error" || kind != "mcp_connection_error" && kind != "invalid_request" {
				t.Errorf("type %q: %s", kind, r.Body)
			}
			if got := r.Get("error.message").Str; !strings.Contains(got, message) || strings.Contains(got, "hunter2") {
				t.Errorf("the message is %q", got)
			}
		})
	}
	if n := len(m.Requests()); n > 0 {
		t.Errorf("the server got %d requests", n)
	}
	unreachable := withTools(useStatus, harness.Ephemeral("x", "http://127.0.0.9:"+port+"/mcp?key=hunter2"))
	r := s.Post(harness.NativeChatPath, unreachable).Want(t, http.StatusBadRequest)
	wantNativeError(t, r, "mcp_connection_error")
	if strings.Contains(r.Body, "hunter2") || strings.Contains(s.Log(), "hunter2") {
		t.Errorf("the query of a URL is told: %s", r.Body)
	}
}

// TestMCPGates_HeadersReachTheirServerAlone: neither another server of the chat, nor one to which it redirects, gets a server's
// headers, and nothing keeps them.
func TestMCPGates_HeadersReachTheirServerAlone(t *testing.T) {
	t.Parallel()
	const first, second = "secret-of-the-first", "secret-of-the-second"
	victim := harness.StartMCP(t, statusTool(harness.Says("wrong")))
	redirecting := map[string]*harness.MCPServer{"at once": harness.StartMCP(t), "in a call": harness.StartMCP(t, statusTool(harness.Says(redRiver)))}
	for when, m := range redirecting {
		m.Instead = func(w http.ResponseWriter, r *http.Request, message gjson.Result) bool {
			isNow := when == "at once" || message.Get("method").Str == "tools/call"
			if isNow {
				http.Redirect(w, r, victim.URL, http.StatusTemporaryRedirect)
			}
			return isNow
		}
	}
	one, two := harness.StartMCP(t, statusTool(harness.Says(redRiver))), harness.StartMCP(t, echoTool("blue moon"))
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openGates})
	with := func(m *harness.MCPServer, label, secret string) harness.Fields {
		return m.Ephemeral(label).With("headers", harness.Fields{"Authorization": "Bearer " + secret, "X-Mine": secret})
	}
	for _, isStream := range []bool{false, true} {
		ask := withTools(useStatus, with(one, "one", first), with(two, "two", second)).With("stream", isStream)
		s.Post(harness.NativeChatPath, ask).Want(t, http.StatusOK)
	}
	for m, secret := range map[*harness.MCPServer]string{one: first, two: second} {
		if len(m.Requests()) == 0 {
			t.Error("a server got no request")
		}
		for _, r := range m.Requests() {
			if r.Header.Get("Authorization") != "Bearer "+secret || r.Header.Get("X-Mine") != secret {
				t.Errorf("%s %s of the server with %q has %v", r.Verb, r.Message.Get("method"), secret, r.Header)
			}
		}
	}
	at := s.Post(harness.NativeChatPath, withTools(useStatus, with(redirecting["at once"], "away", first))).Want(t, http.StatusBadRequest)
	wantNativeError(t, at, "mcp_connection_error")
	in := s.NativeStream(withTools(useStatus, with(redirecting["in a call"], "away", first)))
	if len(in.ServerFaults) == 0 {
		t.Errorf("a call that was redirected: %v", in.Order())
	}
	for _, r := range victim.Requests() {
		t.Errorf("a redirection was followed: %s %s %v", r.Verb, r.Message.Raw, r.Header)
	}
	wantNotKept(t, s, first, second)
}
