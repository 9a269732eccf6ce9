package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemcp"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
)

// mcpHome is a home with an mcp.json, whose path is replaced by HOME in what commands say.
func mcpHome(t *testing.T, entries map[string]fakemcp.Entry) home.Dir {
	t.Helper()
	folder, err := os.MkdirTemp("", "mcp") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	dir := home.Dir(folder)
	t.Setenv(home.Variable, folder)
	if entries != nil {
		fakemcp.Write(t, dir.MCP(), entries)
	}
	return dir
}

// mcp runs `lmcaddy mcp`.
func mcp(t *testing.T, dir home.Dir, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := &cobra.Command{Use: "mcp", SilenceErrors: true, SilenceUsage: true}
	DefineMCP(cmd)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(arguments)
	if err = cmd.ExecuteContext(t.Context()); err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), string(dir), "HOME"))
	}
	return strings.ReplaceAll(out.String(), string(dir), "HOME"), errs.String(), err
}

// allow is a server on the home's socket whose settings allow plugins, or don't.
func allow(t *testing.T, dir home.Dir, plugins bool) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(dir.Socket()), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"allow": map[string]bool{"plugin_mcp": plugins}})
	}))
	_ = server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
}

func TestMCP_LS(t *testing.T) {
	entries := map[string]fakemcp.Entry{
		"files":      {Command: "npx", Env: map[string]string{"KEY": "secret"}},
		"My Weather": {URL: "https://me:secret@weather.example/mcp?key=secret", Headers: map[string]string{"Authorization": "secret"}},
		"wrong":      {},
	}
	const table = "NAME        ID              KIND   COMMAND OR URL\n" +
		"My Weather  mcp/my-weather  http   https://weather.example/mcp\n" +
		"files       mcp/files       stdio  npx\n" +
		"wrong       mcp/wrong       -      -\n\n" +
		"These can't be used:\nwrong: the entry \"wrong\" of mcp.json: it needs a command or a url\n"
	yes, no := true, false
	for name, tt := range map[string]struct {
		entries map[string]fakemcp.Entry
		allowed *bool // nil: no server runs
		want    string
	}{
		"no file":     {nil, nil, "There are no MCP servers. HOME/mcp.json may list some"},
		"no server":   {entries, nil, table},
		"allowed":     {entries, &yes, table + "\nThe running server allows chats to use them.\n"},
		"not allowed": {entries, &no, table + "\nThe running server doesn't allow chats to use them: put \"allow plugin_mcp\""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := mcpHome(t, tt.entries)
			if tt.allowed != nil {
				allow(t, dir, *tt.allowed)
			}
			out, _, err := mcp(t, dir, "ls")
			if err != nil || !strings.HasPrefix(out, tt.want) || tt.allowed == nil && strings.Contains(out, "running") {
				t.Errorf("%v:\n%s", err, cmp.Diff(tt.want, out))
			}
			var list mcpServers
			out, _, err = mcp(t, dir, "ls", "--json")
			if err == nil {
				err = json.Unmarshal([]byte(out), &list)
			}
			if err != nil || len(list.Servers) != len(tt.entries) || !cmp.Equal(list.Allowed, tt.allowed) || strings.Contains(out, "secret") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	dir := mcpHome(t, nil)
	if err := os.WriteFile(dir.MCP(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := mcp(t, dir, "ls"); err == nil || !strings.Contains(err.Error(), "mcpServers") {
		t.Errorf("a file that is no JSON: %v", err)
	}
}

func TestMCP_Test(t *testing.T) {
	dir := mcpHome(t, map[string]fakemcp.Entry{
		"My Files": fakemcp.Program(t, fakemcp.Serves), "broken": fakemcp.Program(t, fakemcp.Fails),
		"away": {URL: "http://127.0.0.1:1/mcp?key=secret"}, "wrong": {},
	})
	took := regexp.MustCompile(`\d+\.\d\d s`)
	for _, name := range []string{"My Files", "my-files", "mcp/my-files"} {
		out, notes, err := mcp(t, dir, "test", name)
		want := strings.TrimPrefix(name, "mcp/") + " has 2 tools, found in 0.00 s.\n\n" +
			"TOOL  DESCRIPTION\necho  Returns a text. It is the same.\npid   -\n"
		if diff := cmp.Diff(want, took.ReplaceAllString(out, "0.00 s")); err != nil || notes != "" || diff != "" {
			t.Errorf("%s: %v, %s (-want +got):\n%s", name, err, notes, diff)
		}
	}
	out, _, err := mcp(t, dir, "test", "my-files", "--json")
	var tested mcpTested
	if err == nil {
		err = json.Unmarshal([]byte(out), &tested)
	}
	if err != nil || tested.Label != "my-files" || tested.Seconds <= 0 || len(tested.Tools) != 2 || !strings.Contains(string(tested.Tools[0].Schema), `"required"`) ||
		tested.Tools[0].Description != "Returns a text.\nIt is the same." {
		t.Errorf("%v: %s", err, out)
	}
	for name, want := range map[string][]string{
		"broken":  {"broken can't be used", "exit status 3", fakemcp.Missing},
		"away":    {"refused the connection"},
		"wrong":   {"it needs a command or a url"},
		"brokn":   {`no MCP server "brokn" in HOME/mcp.json: did you mean broken?`},
		"nothing": {"there are: My Files, away, broken, wrong"},
	} {
		out, _, err := mcp(t, dir, "test", name)
		if err == nil || out != "" || strings.Contains(err.Error(), "secret") {
			t.Fatalf("%s: %v, %s", name, err, out)
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q isn't in %q", name, part, err)
			}
		}
	}
	if _, _, err := mcp(t, mcpHome(t, nil), "test", "files"); err == nil || !strings.Contains(err.Error(), "lists none") {
		t.Errorf("without a file: %v", err)
	}
}

func TestMCP_LinesAndWarnings(t *testing.T) {
	t.Parallel()
	log := newTestLog()
	pool := slog.New(poolHandler{testLog: log})
	pool.Warn("another server's entry is wrong")
	server := pool.With("server", "files")
	server.Warn("tools were left out", "tools", "x")
	for i := range mostLines + 5 {
		server.Info("it says", "line", strings.Repeat("x", i)+"\x1b[2J")
	}
	if got := log.warnings.String(); got != "level=WARN msg=\"tools were left out\" tools=x\n" {
		t.Errorf("warnings: %s", got)
	}
	said := log.said()
	if len(said) != mostLines || said[0] != "xxxxx [2J" {
		t.Errorf("lines: %q", said)
	}
}

func TestMCP_Completion(t *testing.T) {
	mcpHome(t, map[string]fakemcp.Entry{"files": {Command: "a"}, "fonts": {Command: "a"}, "My Weather": {Command: "a"}, "wrong": {}})
	for typed, want := range map[string][]string{
		"": {"my-weather", "files", "fonts", "wrong"}, "f": {"files", "fonts"}, "x": nil, "files,fo": {"files,fonts"}, "files,": {"files,my-weather", "files,files", "files,fonts", "files,wrong"},
	} {
		if got, _ := completeMCP(nil, nil, typed); !slices.Equal(got, want) {
			t.Errorf("%q: %q", typed, got)
		}
	}
	mcpHome(t, nil)
	if got, _ := completeMCP(nil, nil, ""); got != nil {
		t.Errorf("without a file: %q", got)
	}
}

// TestMCP_ExamplesAreRead: every mcp.json that users are shown can be used.
func TestMCP_ExamplesAreRead(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../../../examples/mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	files := [][]byte{example}
	for _, rest := range strings.Split(string(document), "```json\n")[1:] {
		if block, _, _ := strings.Cut(rest, "```"); strings.Contains(block, "mcpServers") {
			files = append(files, []byte(block))
		}
	}
	if len(files) < 2 {
		t.Error("the document has none")
	}
	for _, content := range files {
		path := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := servers.Read(path)
		if err != nil || len(all) == 0 {
			t.Errorf("%v: %s", err, content)
		}
		for _, c := range all {
			if c.Err != nil {
				t.Error(c.Err)
			}
		}
	}
}
