package harness

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mcpModules is the folder in which tools/node.sh installs the MCP servers; MCP_SERVERS overrides it.
const mcpModules = "../.cache/mcpservers/node_modules"

// The real MCP servers, as the scripts that start them.
const (
	Everything = ".bin/mcp-server-everything"
	Filesystem = ".bin/mcp-server-filesystem"
)

// MCPScript is the absolute path of a real MCP server, which node runs.
func MCPScript(t testing.TB, script string) string {
	t.Helper()
	modules, err := fromEnvironment("MCP_SERVERS", mcpModules)
	if err == nil {
		script = filepath.Join(modules, script)
		_, err = os.Stat(script)
	}
	if err != nil {
		t.Fatalf("the MCP servers are missing: %v\nRun tools/node.sh .cache/mcpservers mcpservers in the repository's folder; `make test` does.", err)
	}
	return script
}

// FaultyMCP is the script of an MCP server that shows one fault, which its first argument names; see there.
func FaultyMCP(t testing.TB) string { return mcpFile(t, "faulty.cjs") }

func mcpFile(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("mcpservers", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// StartEverything runs server-everything until the end of the test, with the transport streamableHttp or sse, and returns its
// URL.
func StartEverything(t testing.TB, transport string) (url string) {
	t.Helper()
	cmd := exec.Command("node", "--require", mcpFile(t, "loopback.cjs"), MCPScript(t, Everything), transport)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	port, drained := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "port "); ok {
				port <- text
			}
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-drained
		_ = cmd.Wait() // its status says nothing
	})
	path := map[string]string{"streamableHttp": "/mcp", "sse": "/sse"}[transport]
	return "http://127.0.0.1:" + Wait(t, "server-everything listens", port) + path
}

// WriteMCP writes mcp.json with servers by their labels.
func (h *Home) WriteMCP(servers Fields) {
	h.T.Helper()
	content, err := json.Marshal(Fields{"mcpServers": servers})
	if err != nil {
		h.T.Fatal(err)
	}
	h.WriteMCPText(string(content))
}

// WriteMCPText writes mcp.json, in one step: the server may read it at any time.
func (h *Home) WriteMCPText(content string) {
	h.T.Helper()
	path := filepath.Join(h.Dir, "mcp.json")
	err := os.WriteFile(path+".new", []byte(content), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		h.T.Fatal(err)
	}
}

// SharedFolder makes a folder of the home for server-filesystem, with files by their names, and returns its path. MCPServers
// finds processes by it.
func (h *Home) SharedFolder(files map[string]string) (path string) {
	h.T.Helper()
	path = h.sharedFolder()
	for name, content := range files {
		file := filepath.Join(path, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, []byte(content), 0o600)
		}
		if err != nil {
			h.T.Fatal(err)
		}
	}
	return path
}

func (h *Home) sharedFolder() string { return filepath.Join(h.Dir, "shared") }

// MCPServers returns the processes that have the shared folder as one of their arguments, ordered by id.
func (h *Home) MCPServers() []Process {
	return slices.DeleteFunc(processesWith(h.sharedFolder()), func(p Process) bool { return !slices.Contains(p.Args, h.sharedFolder()) })
}

// Family returns all processes whose folder, arguments or environment are of this home, ordered by id.
func (h *Home) Family() []Process {
	root := filepath.Dir(h.Dir) + string(filepath.Separator)
	return processesWhere(func(folder string) bool {
		cwd, err := os.Readlink(filepath.Join(folder, "cwd"))
		if err == nil && strings.HasPrefix(cwd, root) {
			return true
		}
		for _, name := range []string{"cmdline", "environ"} {
			content, err := os.ReadFile(filepath.Join(folder, name))
			if err == nil && strings.Contains(string(content), root) {
				return true
			}
		}
		return false
	})
}
