package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// The entries of mcp.json in these tests have the home's shared folder as an argument, by which their processes are found.

func filesystem(h *harness.Home) harness.Fields {
	folder := h.SharedFolder(map[string]string{"hello.txt": redRiver, "garden/stone.txt": "blue moon"})
	return harness.Fields{"command": "node", "args": []string{harness.MCPScript(h.T, harness.Filesystem), folder}}
}

func everything(h *harness.Home) harness.Fields {
	return harness.Fields{"command": "node", "args": []string{harness.MCPScript(h.T, harness.Everything), "stdio", h.SharedFolder(nil)}}
}

// faulty is a server with a fault of mcpservers/faulty.cjs.
func faulty(h *harness.Home, fault string, more ...string) harness.Fields {
	return harness.Fields{"command": "node", "args": append([]string{harness.FaultyMCP(h.T), fault, h.SharedFolder(nil)}, more...)}
}

// startPlugins starts a server with mcp.json, for requests with a token.
func startPlugins(h *harness.Home, servers harness.Fields) *harness.Server {
	h.T.Helper()
	return startPluginsWith(h, servers, harness.Config{})
}

func startPluginsWith(h *harness.Home, servers harness.Fields, c harness.Config) *harness.Server {
	h.T.Helper()
	h.WriteMCP(servers)
	c.LM = openGates
	s := harness.Start(h, c)
	return s.As(created(h.T, h, "--name", "any"))
}

func TestPlugin_FilesystemServer(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	s := startPlugins(h, harness.Fields{"Own_Files": filesystem(h)})
	if servers := h.MCPServers(); len(servers) > 0 {
		t.Errorf("servers are started before anybody uses them: %v", servers)
	}
	for _, c := range []struct {
		name, id, prompt, tool string
		arguments              map[string]any
		output, answer         string // the answer's is empty where the model can't copy the result
	}{
		{"its directories", "mcp/Own_Files", "Use list_allowed_directories.", "list_allowed_directories", map[string]any{}, "Allowed directories:\n" + h.Dir + "/shared", ""},
		{"a directory", "mcp/own-files", "Use list_directory with path garden", "list_directory", map[string]any{"path": "garden"}, "[FILE] stone.txt", ""},
		{"a file", "mcp/own-files", "Use read_text_file with path hello.txt", "read_text_file", map[string]any{"path": "hello.txt"}, redRiver, returned + redRiver},
	} {
		for form, integration := range map[string]any{
			"as a string": c.id,
			"as an object": harness.Fields{
				"type": "plugin", "id": c.id, "allowed_tools": []string{"list_allowed_directories", "list_directory", "read_text_file"},
			},
		} {
			t.Run(c.name+" "+form, func(t *testing.T) {
				body := s.In(t).NativeChat(withTools(c.prompt, integration))
				message := wantCalled(t, body, toolCall(c.tool, c.arguments, plugin(c.id), c.output))
				if c.answer != "" && message != c.answer {
					t.Errorf("the message is %q", message)
				}
			})
		}
	}
	if servers := h.MCPServers(); len(servers) != 1 {
		t.Errorf("%d servers: %v", len(servers), servers)
	}
	st := s.NativeStream(withTools("Use read_text_file with path hello.txt", "mcp/own-files"))
	if diff := cmp.Diff("chat.start"+promptEvents+callEvents+promptEvents+messageEvents+" chat.end", st.Order()); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	// A tool's own error is a result.
	body := s.NativeChat(withTools("Use read_text_file with path stone.txt", "mcp/own-files"))
	if output := body.Get("output.0.output").Str; body.Get("output.0.type").Str != "tool_call" || !strings.Contains(output, "ENOENT") {
		t.Errorf("a file that doesn't exist: %s", body.Raw)
	}
}

func TestPlugin_ServerOverHTTP(t *testing.T) {
	t.Parallel()
	overEngines(t, pluginServerOverHTTP)
}

func pluginServerOverHTTP(t *testing.T, e engine) {
	const secret = "the-operators-own"
	m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	entry := harness.Fields{"url": m.URL, "headers": harness.Fields{"Authorization": "Bearer " + secret}}
	s := startPluginsWith(e.home(t), harness.Fields{"remote": entry}, e.with(harness.Config{}))
	wantRiver(t, s.NativeChat(withTools(useStatus, "mcp/remote")), "status", plugin("mcp/remote"))
	for _, r := range m.Requests() {
		if got := r.Header.Get("Authorization"); got != "Bearer "+secret {
			t.Errorf("a request with the authorization %q", got)
		}
	}
	if strings.Contains(s.Log(), secret) {
		t.Error("the secret of a header is in the log")
	}
}

// A server gets few variables, since those of lmcaddy may be secrets, and those of its entry.
func TestPlugin_Environment(t *testing.T) {
	t.Parallel()
	const ours, its = "secret-of-lmcaddy", "secret-of-the-server"
	h := harness.NewHome(t)
	h.Env = append(h.Env, "HF_TOKEN="+ours)
	entry := everything(h)
	entry["env"] = harness.Fields{"ITS_OWN": its}
	s := startPlugins(h, harness.Fields{"everything": entry})
	body := s.NativeChat(withTools("Use get-env.", harness.Fields{"type": "plugin", "id": "mcp/everything", "allowed_tools": []string{"get-env"}}).With("store", false))
	variables := gjson.Parse(gjson.Get(body.Get("output.0.output").Str, "0.text").Str)
	if variables.Get("ITS_OWN").Str != its || variables.Get("PATH").Str != h.Path || variables.Get("HOME").Str != h.User {
		t.Errorf("it lacks variables: %s", variables.Raw)
	}
	for name, value := range variables.Map() {
		if name != "ITS_OWN" && (strings.Contains(value.Str, ours) || strings.Contains(name, "HF_")) {
			t.Errorf("%s=%s", name, value.Str)
		}
	}
	wantNotKept(t, s, ours, its)
}

// wantNotKept checks that secrets are neither in the log nor in a file of the home, mcp.json aside.
func wantNotKept(t testing.TB, s *harness.Server, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		wantNoSecretsBut(t, s, "mcp.json", ":"+secret)
	}
}

func TestPlugin_FileIsReadAgain(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	s := startPlugins(h, harness.Fields{})
	ask := withTools(useStatus, "mcp/one")
	status := func(want int) harness.Reply {
		t.Helper()
		return s.Post(harness.NativeChatPath, ask).Want(t, want)
	}
	unknown := status(http.StatusBadRequest)
	wantNativeError(t, unknown, "plugin_connection_error")
	if strings.Contains(unknown.Body, h.Dir) {
		t.Errorf("a path of the server: %s", unknown.Body)
	}

	h.WriteMCP(harness.Fields{"one": faulty(h, "none")})
	wantRiver(t, status(http.StatusOK).Get("@this"), "status", plugin("mcp/one"))
	first := h.MCPServers()[0]

	h.WriteMCP(harness.Fields{"one": faulty(h, "none", "changed"), "two": faulty(h, "none")})
	wantRiver(t, status(http.StatusOK).Get("@this"), "status", plugin("mcp/one"))
	harness.Eventually(t, harness.Patience, "the server of the earlier entry has ended", func() bool { return !first.Alive() })
	if servers := h.MCPServers(); len(servers) != 1 || servers[0].Args[len(servers[0].Args)-1] != "changed" {
		t.Errorf("the servers are %v", servers)
	}

	h.WriteMCPText(`{"mcpServers":{"one":`)
	broken := status(http.StatusBadRequest)
	wantNativeError(t, broken, "plugin_connection_error")
	h.WriteMCP(harness.Fields{"one": harness.Fields{"command": 7}, "two": faulty(h, "none")})
	wantNativeError(t, status(http.StatusBadRequest), "plugin_connection_error")
	wantRiver(t, s.NativeChat(withTools(useStatus, "mcp/two")), "status", plugin("mcp/two"))

	h.WriteMCP(harness.Fields{})
	wantNativeError(t, status(http.StatusBadRequest), "plugin_connection_error")
	harness.Eventually(t, harness.Patience, "no server is left", func() bool { return len(h.MCPServers()) == 0 })
}

func TestPlugin_FiftyChatsUseOneProcess(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	s := startPlugins(h, harness.Fields{"everything": everything(h)})
	integration := harness.Fields{"type": "plugin", "id": "mcp/everything", "allowed_tools": []string{"echo"}}
	var replies []<-chan harness.Reply
	for range 50 {
		replies = append(replies, s.Go(harness.NativeChatPath, withTools(useEchoTool, integration)))
	}
	seen := map[int]bool{}
	for _, reply := range replies {
		for _, p := range h.MCPServers() {
			seen[p.PID] = true
		}
		r := harness.Wait(t, "an answer", reply).Want(t, http.StatusOK)
		wantCalled(t, r.Get("@this"), toolCall("echo", map[string]any{"message": "hello world"}, plugin("mcp/everything"), "Echo: hello world"))
	}
	if len(seen) != 1 || len(h.MCPServers()) != 1 {
		t.Errorf("there were %d processes, now %v", len(seen), h.MCPServers())
	}
}

// A server that has ended is started again for the next chat.
func TestPlugin_ServerThatDiedIsStartedAgain(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	s := startPlugins(h, harness.Fields{"one": faulty(h, "none")})
	wantRiver(t, s.NativeChat(withTools(useStatus, "mcp/one")), "status", plugin("mcp/one"))
	for range 3 {
		servers := h.MCPServers()
		if len(servers) != 1 {
			t.Fatalf("processes: %v", servers)
		}
		servers[0].Kill(t)
		harness.Eventually(t, harness.Patience, "its end is noticed", func() bool {
			return errors.Is(syscall.Kill(servers[0].PID, 0), syscall.ESRCH) // nobody has to wait for it any more
		})
		wantRiver(t, s.NativeChat(withTools(useStatus, "mcp/one")), "status", plugin("mcp/one"))
	}
}

func TestPlugin_ServerOutlivesAReloadAndEndsWhenIdle(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	h.WriteMCP(harness.Fields{"one": faulty(h, "none")})
	config := harness.Config{Port: harness.FreePort(t), LM: openGates}
	s := harness.Start(h, config)
	s = s.As(created(t, h, "--name", "any"))
	use := func() harness.Process {
		t.Helper()
		wantRiver(t, s.NativeChat(withTools(useStatus, "mcp/one")), "status", plugin("mcp/one"))
		servers := h.MCPServers()
		if len(servers) != 1 {
			t.Fatalf("the servers are %v", servers)
		}
		return servers[0]
	}
	first := use()
	wantDone(t, s.Reload(config.String()))
	if second := use(); second.PID != first.PID {
		t.Errorf("process %d is used after a reload, %d before", second.PID, first.PID)
	}
	config.LM = append(openGates, "mcp_idle 100ms")
	wantDone(t, s.Reload(config.String()))
	harness.Eventually(t, harness.Patience, "the idle server has ended", func() bool { return len(h.MCPServers()) == 0 })
	wantRiver(t, s.NativeChat(withTools(useStatus, "mcp/one")), "status", plugin("mcp/one"))
}

// endings are servers in whose processes lmcaddy has to end more than one child.
func endings(h *harness.Home) harness.Fields {
	shell := func(script string, arguments ...string) harness.Fields {
		return harness.Fields{"command": "sh", "args": append([]string{"-c", script + ` "$@"; true`, "sh"}, arguments...)}
	}
	folder := h.SharedFolder(nil)
	return harness.Fields{
		"plain":    everything(h),
		"shell":    shell("node", harness.MCPScript(h.T, harness.Everything), "stdio", folder),
		"stubborn": faulty(h, "ignores signals"), // and so does its child
	}
}

// useAll uses each server of mcp.json once, and returns their processes.
func useAll(s *harness.Server, servers harness.Fields) []harness.Process {
	s.T.Helper()
	for label := range servers {
		prompt := useEchoTool
		if label == "stubborn" {
			prompt = useStatus
		}
		body := s.NativeChat(withTools(prompt, "mcp/"+label))
		if kind := body.Get("output.0.type").Str; kind != "tool_call" {
			s.T.Errorf("%s: %s", label, body.Raw)
		}
	}
	found := s.MCPServers()
	if len(found) < len(servers)+2 { // the shell's and the stubborn one's child
		s.T.Errorf("%d processes: %v", len(found), found)
	}
	return found
}

func TestPlugin_NoServerOutlivesLmcaddy(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*harness.Server){
		"SIGTERM": func(s *harness.Server) { s.Stop(syscall.SIGTERM, harness.Patience) },
		"SIGKILL": func(s *harness.Server) { s.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			h := harness.NewHome(t)
			servers := endings(h)
			s := startPlugins(h, servers)
			useAll(s, servers)
			end(s)
			if name != "SIGKILL" {
				wantNoFamily(t, h, "after "+name)
				return
			}
			harness.Eventually(t, harness.Patience, "no process of the home is left", func() bool { return len(h.Family()) == 0 })
		})
	}
}

func wantNoFamily(t testing.TB, h *harness.Home, when string) {
	t.Helper()
	for _, p := range h.Family() {
		t.Errorf("%s: process %d is left: %s", when, p.PID, fmt.Sprintf("%.200s", strings.Join(p.Args, " ")))
	}
}

// What left its server's process group is found at the next start.
func TestPlugin_LeftoversOfACrashEndAtTheNextStart(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	s := startPlugins(h, harness.Fields{"one": faulty(h, "ignores signals", "detached")})
	wantRiver(t, s.NativeChat(withTools(useStatus, "mcp/one")), "status", plugin("mcp/one"))
	harness.Eventually(t, harness.Patience, "its child runs", func() bool { return len(h.MCPServers()) == 2 })
	s.Kill()
	harness.Start(h, harness.Config{LM: openGates})
	harness.Eventually(t, harness.Patience, "no server is left", func() bool { return len(h.MCPServers()) == 0 })
}
