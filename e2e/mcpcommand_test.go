package e2e

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

func TestMCPCommand_ListAndTest(t *testing.T) {
	t.Parallel()
	const secret = "secret-of-the-command"
	h := harness.NewHome(t)
	wantDone(t, h.Command("mcp", "ls"), "mcp.json") // there is none: it says where to write one
	m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	broken := faulty(h, "exits at once")
	broken["env"] = harness.Fields{"KEY": secret}
	h.WriteMCP(harness.Fields{
		"Own_Files": filesystem(h),
		"remote":    harness.Fields{"url": m.URL, "headers": harness.Fields{"Authorization": "Bearer " + secret}},
		"broken":    broken,
		"missing":   harness.Fields{"command": "no-such-program"},
	})
	both := func(t *testing.T, with string) {
		t.Run(with, func(t *testing.T) {
			h := h.In(t)
			list := h.Command("mcp", "ls")
			wantDone(t, list, "Own_Files", "mcp/own-files", "remote", "broken", "missing")
			wantDone(t, h.Command("mcp", "test", "Own_Files"), "read_text_file", "list_directory")
			wantDone(t, h.Command("mcp", "test", "own-files"), "read_text_file")
			wantDone(t, h.Command("mcp", "test", "remote"), "status")
			wantFailed(t, h.Command("mcp", "test", "broken"), "broken")
			wantFailed(t, h.Command("mcp", "test", "missing"), "no-such-program")
			wantFailed(t, h.Command("mcp", "test", "nobody"), "nobody", "Own_Files")
			for _, command := range [][]string{{"ls"}, {"ls", "--json"}, {"test", "remote"}, {"test", "broken"}} {
				if r := h.Command(append([]string{"mcp"}, command...)...); strings.Contains(r.Output, secret) {
					t.Errorf("mcp %v shows a secret: %s", command, r.Output)
				}
			}
			if servers := h.MCPServers(); len(servers) > 0 {
				t.Errorf("servers are left: %v", servers)
			}
		})
	}
	both(t, "without a server")
	s := harness.Start(h, harness.Config{LM: openGates})
	both(t, "with a server")
	wantNotKept(t, s, secret)
	if r := h.Command("mcp", "ls", "--json"); r.Status != 0 || !gjson.Valid(r.Output) {
		t.Errorf("status %d: %s", r.Status, r.Output)
	}
}

func TestMCPCommand_ChatShowsCalls(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	h.WriteMCP(harness.Fields{"files": filesystem(h)})
	s := harness.Start(h, harness.Config{LM: openGates})
	ask := []string{"chat", harness.Bare, "--temperature", "0", "--reasoning", "off", "-p", "Use read_text_file with path hello.txt"}
	status, stdout, stderr := s.CommandOutputs(append(ask, "--mcp", "files")...)
	if status != 0 || stdout != returned+redRiver+"\n" {
		t.Errorf("status %d, standard output %q", status, stdout)
	}
	for _, part := range []string{"read_text_file", "hello.txt", redRiver} {
		if !strings.Contains(stderr, part) {
			t.Errorf("%q is not on standard error: %s", part, stderr)
		}
	}
	wantFailed(t, s.Command(append(ask, "--mcp", "nobody")...), "nobody")
}

func TestMCPCommand_ChatSaysWhichGateIsClosed(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	h.WriteMCP(harness.Fields{"files": filesystem(h)})
	s := harness.Start(h, harness.Config{})
	wantFailed(t, s.Command("chat", harness.Bare, "-p", "Hello", "--mcp", "files"), "allow plugin_mcp")
}
