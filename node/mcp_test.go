package node

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

func TestMCPSettings_Validate(t *testing.T) {
	t.Parallel()
	for host, isValid := range map[string]bool{
		"tools.lan": true, "tools.lan:3001": true, "localhost": true, "192.168.1.7": true, "192.168.1.7:80": true, "::1": true,
		"[::1]:3001": true, "10.0.0.0/8": true, "fd00::/8": true,
		"": false, ":3001": false, "*": false, "*.lan": false, "tools.lan:0": false, "tools.lan:http": false, "tools.lan:70000": false,
		"http://tools.lan": false, "tools.lan/mcp": false, "10.0.0.0/33": false, "me@tools.lan": false, "{env.HOST}": false, "[::1": false,
	} {
		err := MCPSettings{PrivateHosts: []string{"tools.lan", host}}.Validate()
		if (err == nil) != isValid || err != nil && !strings.Contains(err.Error(), `"`+host+`"`) {
			t.Errorf("%q: %v", host, err)
		}
	}
	for _, wrong := range []MCPSettings{{CallTimeout: -time.Second}, {IdleTTL: -1}, {MaxRounds: -1}, {MaxRounds: 1}} {
		if err := (Settings{MCP: wrong}).Validate(); err == nil || !strings.Contains(err.Error(), "mcp_max_rounds") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// TestMCP_GatesWithoutEffect: a gate that nothing can pass is told of, with what is missing, and one that is used isn't.
func TestMCP_GatesWithoutEffect(t *testing.T) {
	t.Parallel()
	const noFile, noToken = "allow plugin_mcp has no effect", "no token has the scope mcp.plugin"
	for name, tt := range map[string]struct {
		file   bool
		scopes []Scope
		want   map[string]bool
	}{
		"neither a file nor a token":  {false, nil, map[string]bool{noFile: true, noToken: true}},
		"a file, and another's token": {true, []Scope{ScopeInference}, map[string]bool{noFile: false, noToken: true}},
		"a file and a token":          {true, []Scope{ScopeMCPPlugin}, map[string]bool{noFile: false, noToken: false}},
		"an administrator's token":    {true, []Scope{ScopeAdmin}, map[string]bool{noFile: false, noToken: false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log lines
			dir := home.Dir(t.TempDir())
			if tt.file {
				if err := os.WriteFile(dir.MCP(), []byte(`{"mcpServers":{}}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			n := open(t, dir)
			push(t, n, 1, Settings{Log: slog.New(slog.NewTextHandler(&log, nil))})
			if tt.scopes != nil {
				if _, _, err := n.CreateToken(t.Context(), Token{Name: "a", Scopes: tt.scopes}); err != nil {
					t.Fatal(err)
				}
			}
			n.warnIdle(&Settings{
				Gates: Gates{PluginMCP: true, EphemeralMCP: true},
				MCP:   MCPSettings{PrivateHosts: []string{"tools.lan"}, CallTimeout: time.Second},
			})
			for text, isSaid := range tt.want {
				if log.has(text) != isSaid {
					t.Errorf("%q is said: %v:\n%s", text, !isSaid, &log.text)
				}
			}
			if log.has(noFile) != log.has(string(dir)) {
				t.Errorf("the file's place:\n%s", &log.text)
			}
			if log.has("mcp_") {
				t.Errorf("a setting that is used:\n%s", &log.text)
			}
		})
	}
}
