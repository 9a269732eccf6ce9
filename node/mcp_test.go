package node

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemcp"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node/access"
)

func TestMCPSettings_Validate(t *testing.T) {
	t.Parallel()
	for host, isValid := range map[string]bool{
		"tools.lan": true, "tools.lan:3001": true, "localhost": true, "192.168.1.7": true, "192.168.1.7:80": true, "::1": true,
		"[::1]:3001": true, "10.0.0.0/8": true, "fd00::/8": true,
		"": false, ":3001": false, "*": false, "*.lan": false, "tools.lan:http": false, "tools.lan:70000": false,
		"http://tools.lan": false, "tools.lan/mcp": false, "10.0.0.0/33": false, "me@tools.lan": false,
	} {
		err := MCPSettings{Settings: servers.Settings{PrivateHosts: []string{"tools.lan", host}}}.Validate()
		if (err == nil) != isValid || err != nil && !strings.Contains(err.Error(), `"`+host+`"`) {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// TestMCP_GatesWithoutEffect: a gate that nothing can pass is told of, with what is missing, and one that is used isn't.
func TestMCP_GatesWithoutEffect(t *testing.T) {
	t.Parallel()
	const noFile, noToken = "allow plugin_mcp has no effect", "no token has the scope mcp.plugin"
	for name, tt := range map[string]struct {
		file   bool
		scopes []access.Scope
		want   map[string]bool
	}{
		"neither a file nor a token":  {false, nil, map[string]bool{noFile: true, noToken: true}},
		"a file, and another's token": {true, []access.Scope{access.ScopeInference}, map[string]bool{noFile: false, noToken: true}},
		"a file and a token":          {true, []access.Scope{access.ScopeMCPPlugin}, map[string]bool{noFile: false, noToken: false}},
		"an administrator's token":    {true, []access.Scope{access.ScopeAdmin}, map[string]bool{noFile: false, noToken: false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log lines
			dir := home.Dir(t.TempDir())
			if tt.file {
				fakemcp.Write(t, dir.MCP(), map[string]fakemcp.Entry{"fake": fakemcp.Program(t, fakemcp.Serves)})
			}
			n := open(t, dir)
			push(t, n, 1, Settings{Log: slog.New(slog.NewTextHandler(&log, nil))})
			if tt.scopes != nil {
				if _, _, err := n.Access.Tokens.Create(t.Context(), access.Token{Name: "a", Scopes: tt.scopes}); err != nil {
					t.Fatal(err)
				}
			}
			n.warnIdle(&Settings{
				Gates: Gates{PluginMCP: true, EphemeralMCP: true},
				MCP:   MCPSettings{Settings: servers.Settings{PrivateHosts: []string{"tools.lan"}, CallTimeout: time.Second}},
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

// callMCP calls a tool of a server of mcp.json, and returns the content of its result.
func callMCP(t *testing.T, n *Node, tool, args string) string {
	t.Helper()
	session, err := n.MCP.Plugin(t.Context(), "Fake")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Release()
	result, err := session.Call(t.Context(), tool, json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Content)
}

// TestMCP_ProgramsAreTheNodes: a program is started once, outlives a reload, and ends with the node.
func TestMCP_ProgramsAreTheNodes(t *testing.T) {
	t.Parallel()
	dir := home.Dir(t.TempDir())
	fakemcp.Write(t, dir.MCP(), map[string]fakemcp.Entry{"Fake": fakemcp.Program(t, fakemcp.Serves)})
	n := reserve(t, dir).Open(slog.New(slog.DiscardHandler))
	push(t, n, 1, Settings{})
	if got := callMCP(t, n, "echo", `{"text":"Hi"}`); got != `[{"type":"text","text":"Hi"}]` {
		t.Errorf("echo: %s", got)
	}
	first := callMCP(t, n, "pid", `{}`)
	push(t, n, 2, Settings{MCP: MCPSettings{Settings: servers.Settings{IdleTTL: time.Hour}}})
	n.Pop(1)
	if second := callMCP(t, n, "pid", `{}`); second != first {
		t.Errorf("after a reload, %s runs, not %s", second, first)
	}
	recorded := func() []os.DirEntry {
		entries, err := os.ReadDir(dir.MCPServers())
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	if len(recorded()) != 1 {
		t.Errorf("the program isn't recorded for the case of a crash: %v", recorded())
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if left := recorded(); len(left) > 0 {
		t.Errorf("the program hasn't ended: %v", left)
	}
	if _, err := n.MCP.Plugin(t.Context(), "Fake"); err == nil {
		t.Error("a server was started after the end")
	}
}

// TestMCP_SettingsAreEnforced: those of the newest configuration count.
func TestMCP_SettingsAreEnforced(t *testing.T) {
	t.Parallel()
	n := open(t, home.Dir(t.TempDir()))
	refused := func(settings Settings, gen uint64) string {
		t.Helper()
		push(t, n, gen, settings)
		_, err := n.MCP.Remote(t.Context(), "ann", servers.Remote{Label: "a", URL: "http://127.0.0.1:1/mcp"})
		if err == nil {
			t.Fatal("a server on port 1 answers")
		}
		return err.Error()
	}
	if got := refused(Settings{}, 1); !strings.Contains(got, "non-public") {
		t.Errorf("a private host: %s", got)
	}
	if got := refused(Settings{MCP: MCPSettings{Settings: servers.Settings{PrivateHosts: []string{"127.0.0.1:1"}}}}, 2); strings.Contains(got, "non-public") {
		t.Errorf("a host that is listed: %s", got)
	}
}
