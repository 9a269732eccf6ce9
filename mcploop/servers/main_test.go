package servers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"

	"github.com/lmcaddy/lmcaddy/mcploop"
)

// roleVariable makes the test binary a server on its standard input and output.
const roleVariable = "SERVERS_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}

// play is the program that a role names. Each may write a line into the file COUNT to show that it was started.
func play(role string) int {
	if count := os.Getenv("COUNT"); count != "" {
		f, err := os.OpenFile(count, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 3
		}
		fmt.Fprintln(f, os.Getpid())
		f.Close()
	}
	switch role {
	case "library":
		if server.ServeStdio(newServer()) != nil {
			return 4
		}
		return 0
	case "exit":
		fmt.Fprintln(os.Stderr, "no license found")
		return 7
	case "hang":
		for range lines(os.Stdin) {
			continue
		}
		return 0
	default:
		return script(role)
	}
}

// request is what a hand-written server reads.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string         `json:"name"`
		Cursor    string         `json:"cursor"`
		Arguments map[string]any `json:"arguments"`
	} `json:"params"`
}

func lines(f *os.File) func(func(request) bool) {
	return func(yield func(request) bool) {
		in := bufio.NewScanner(f)
		in.Buffer(nil, 64<<20)
		for in.Scan() {
			var r request
			if json.Unmarshal(in.Bytes(), &r) == nil && !yield(r) {
				return
			}
		}
	}
}

const hello = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}`

// script is a hand-written server.
func script(role string) int {
	answer := func(id json.RawMessage, result string) {
		fmt.Fprintf(os.Stdout, `{"result":%s,"jsonrpc":"2.0","id":%s}`+"\n", result, id)
	}
	for r := range lines(os.Stdin) {
		switch {
		case r.Method == "initialize" && role == "garbage":
			fmt.Fprint(os.Stdout, strings.Repeat("what?\n", 100))
		case r.Method == "initialize":
			answer(r.ID, hello)
		case r.Method == "tools/list":
			answer(r.ID, `{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}`)
		case r.Method != "tools/call", r.Params.Name == "ignore":
			if log := os.Getenv("SEEN"); log != "" {
				f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err == nil {
					fmt.Fprintln(f, r.Method, r.Params.Name)
					f.Close()
				}
			}
		case r.Params.Name == "huge":
			fmt.Fprint(os.Stdout, `{"result":{"content":[{"type":"text","text":"`)
			block := strings.Repeat("x", 1<<20)
			for range 16 {
				fmt.Fprint(os.Stdout, block)
			}
			fmt.Fprintf(os.Stdout, `"}]},"jsonrpc":"2.0","id":%s}`+"\n", r.ID)
		case r.Params.Name == "endless":
			for {
				if _, err := fmt.Fprint(os.Stdout, strings.Repeat("x", 1<<20)); err != nil {
					return 5
				}
			}
		case r.Params.Name == "die":
			fmt.Fprintln(os.Stderr, "out of luck")
			return 9
		case r.Params.Name == "deaf":
			time.Sleep(time.Hour)
		default:
			answer(r.ID, `{"content":[{"type":"text","text":"done"}]}`)
		}
	}
	return 0
}

// newServer returns a server made with the library.
func newServer() *server.MCPServer {
	s := server.NewMCPServer("test", "1", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text", mcp.Required())), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	s.AddTool(mcp.NewTool("fail"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no such luck"), nil
	})
	s.AddTool(mcp.NewTool("grow"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddTool(mcp.NewTool("grown"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("new"), nil
		})
		return mcp.NewToolResultText("grew"), nil
	})
	return s
}

type testWriter struct {
	t    *testing.T
	done *atomic.Bool
}

func (w testWriter) Write(p []byte) (int, error) {
	if !w.done.Load() {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// newPool returns a pool with an mcp.json of the given entries, which may connect to this machine.
func newPool(t *testing.T, entries map[string]any) *Pool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mcp.json")
	if entries != nil {
		writeFile(t, file, entries)
	}
	w := testWriter{t, new(atomic.Bool)}
	log := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := NewPool(Options{File: file, Log: log})
	t.Cleanup(func() {
		p.Close()
		w.done.Store(true)
	})
	p.Set(Settings{PrivateHosts: []string{"127.0.0.1"}, CallTimeout: 2 * time.Minute})
	return p
}

func writeFile(t *testing.T, file string, entries map[string]any) {
	t.Helper()
	content, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// program is an entry for the test binary in a role.
func program(role string, env ...string) map[string]any {
	all := map[string]string{roleVariable: role}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		all[name] = value
	}
	executable, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return map[string]any{"command": executable, "env": all}
}

// plugin connects to an entry of mcp.json.
func plugin(t *testing.T, p *Pool, label string) *Session {
	t.Helper()
	s, err := p.Plugin(t.Context(), label)
	if err != nil {
		t.Fatalf("connecting to %s: %v: %v", label, err, causeOf(err))
	}
	t.Cleanup(s.Release)
	return s
}

// remote connects to a server at a URL.
func remote(t *testing.T, p *Pool, url string) *Session {
	t.Helper()
	s, err := p.Remote(t.Context(), "owner", Remote{Label: "r", URL: url})
	if err != nil {
		t.Fatalf("connecting to %s: %v: %v", url, err, causeOf(err))
	}
	t.Cleanup(s.Release)
	return s
}

// nearlySpent leaves the next call of a session two messages of the longest kind: what never ends would take a minute to send the whole
// budget on a busy machine.
func nearlySpent(s *Session) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	b := s.slot.conn.(*link).budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = 2*maxMessage - callBudget
}

func causeOf(err error) error {
	if e, ok := err.(*ConnectionError); ok { //nolint:errorlint // only for a message
		return e.Cause
	}
	return nil
}

func names(tools []mcploop.Tool) []string {
	var all []string
	for _, tool := range tools {
		all = append(all, tool.Name)
	}
	return all
}

// overHTTP are the ways to serve over HTTP.
func overHTTP(t *testing.T) map[string]string {
	t.Helper()
	urls := make(map[string]string)
	for name, option := range map[string]server.StreamableHTTPOption{
		"stateful":  server.WithStateful(true),
		"stateless": server.WithStateLess(true),
	} {
		urls[name] = serve(t, server.NewStreamableHTTPServer(newServer(), option)) + "/mcp"
	}
	urls["newest"] = serve(t, newest(newServer())) + "/mcp"
	old := server.NewSSEServer(newServer())
	urls["sse"] = serve(t, old) + "/sse"
	return urls
}

// newest is a server that doesn't know the handshake any more.
func newest(s *server.MCPServer) http.Handler {
	inner := server.NewStreamableHTTPServer(s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !mcp.IsModernProtocol(r.Header.Get("Mcp-Protocol-Version")) {
			http.Error(w, "which protocol?", http.StatusBadRequest)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// serve serves until the test ends. It cuts off what still goes on then.
func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}
