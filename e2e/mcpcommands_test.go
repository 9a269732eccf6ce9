package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// echoProgram is an MCP server with the tool echo, which says on standard error that it was started.
const echoProgram = `echo "the echo begins" >&2
while read -r line; do
	id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case $line in
	*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}' ;;
	*'"tools/list"'*) result='{"tools":[{"name":"echo","description":"Echoes a text","inputSchema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}}]}' ;;
	*'"tools/call"'*) result='{"content":[{"type":"text","text":"Echo: hello world"}]}' ;;
	*) continue ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

// The commands about MCP servers work with a server and without, and show the operator what happens.
func TestMCPCommands(t *testing.T) {
	h := harness.NewHome(t)
	for name, text := range map[string]string{
		"echo.sh": echoProgram,
		"mcp.json": `{"mcpServers":{"My Echo":{"command":"/bin/sh","args":["echo.sh"]},` +
			`"broken":{"command":"/bin/sh","args":["-c","echo the key is missing >&2; exit 3"]}}}`,
	} {
		if err := os.WriteFile(filepath.Join(h.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	test := func() {
		t.Helper()
		wantDone(t, h.Command("mcp", "test", "my-echo"), "1 tool", "Echoes a text")
		r := h.Command("mcp", "test", "My Echo", "--json")
		if wantDone(t, r); gjson.Get(r.Output, "tools.0.name").Str != "echo" {
			t.Errorf("%s", r.Output)
		}
		wantFailed(t, h.Command("mcp", "test", "broken"), "exit status 3", "the key is missing")
		wantFailed(t, h.Command("mcp", "test", "brokn"), "did you mean broken?")
	}
	wantDone(t, h.Command("mcp", "ls"), "mcp/my-echo", "stdio", "/bin/sh")
	test()

	closed := harness.Start(h, harness.Config{})
	wantDone(t, h.Command("mcp", "ls"), "doesn't allow")
	ask := []string{"chat", harness.Bare, "--temperature", "0", "--prompt", "Use echo with message hello world", "--mcp", "My Echo"}
	wantFailed(t, h.Command(ask...), "allow plugin_mcp")
	if status := closed.Stop(syscall.SIGTERM, harness.Patience); status != 0 {
		t.Errorf("the server ended with status %d", status)
	}

	s := harness.Start(h, harness.Config{LM: []string{"allow plugin_mcp"}})
	wantDone(t, h.Command("mcp", "ls"), "allows chats to use them")
	test()
	const called = "→ echo({\"message\":\"hello world\"})\n← echo: Echo: hello world\n"
	wantDone(t, h.Command(ask...), called+"The tool returned: Echo: hello world")
	wantFailed(t, h.Command(append(ask, "--host", s.Base)...), "--token")
	token := created(t, h, "--name", "tools", "--scopes", "inference,mcp.plugin")
	wantDone(t, h.Command(append(ask, "--host", s.Base, "--token", token)...), called)
	wantFailed(t, h.Command("chat", harness.Bare, "--prompt", "Hi", "--mcp", "nothing"), "My Echo, broken")
}
