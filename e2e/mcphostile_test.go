package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// faultyStarts and faultyCalls are faults of a server of mcp.json, by the words of mcpservers/faulty.cjs.
var (
	faultyStarts = []string{"exits at once"}
	faultyCalls  = []string{"dies", "sends a huge result", "never ends its line", "sends garbage"}
	bearable     = []string{"greets on standard output", "floods standard error"}
)

const (
	hostileBound = 60 * time.Second // of a chat with a hostile server, while the machine is busy
	hostilePeak  = 300 << 20        // bytes that lmcaddy may use at most
)

// TestMCPHostile has a chat use each hostile server, while other chats go on. Each costs its own chat an error and nothing else.
func TestMCPHostile(t *testing.T) {
	h := harness.NewHome(t)
	entries := harness.Fields{"honest": faulty(h, "none")}
	for _, faults := range [][]string{faultyStarts, faultyCalls, bearable} {
		for _, name := range faults {
			entries[strings.ReplaceAll(name, " ", "-")] = faulty(h, name)
		}
	}
	h.WriteMCP(entries)
	s := harness.Start(h, harness.Config{LM: append(openGates, "mcp_timeout 20s", "model "+harness.Model+" {", "	context_length 2048", "}")})
	s = s.As(created(t, h, "--name", "any"))
	s.NativeChat(withTools(useStatus, "mcp/honest"))
	victim := harness.StartMCP(t, statusTool(harness.Says("wrong")))

	t.Run("all", func(t *testing.T) {
		for name, instead := range hostileStarts(victim.URL) {
			t.Run("a server that "+name, func(t *testing.T) {
				t.Parallel()
				m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
				m.Instead = instead
				wantRefused(t, s.In(t), m.Ephemeral("hostile"), "mcp_connection_error")
			})
		}
		for name, f := range hostileCalls {
			t.Run("a tool that "+name, func(t *testing.T) {
				t.Parallel()
				m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
				m.Instead = on("tools/call", f)
				wantGoesOn(t, s.In(t), m.Ephemeral("hostile"), "mcp_connection_error")
			})
		}
		for name, result := range oddResults {
			t.Run("a result that is "+name, func(t *testing.T) {
				t.Parallel()
				m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
				m.Instead = on("tools/call", replies(result))
				wantEndured(t, s.In(t), m.Ephemeral("odd"))
			})
		}
		for name, tool := range oddTools() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
				m.Instead = on("tools/list", replies(`{"tools":[`+tool+`,{"name":"status","inputSchema":`+anyObject+`}]}`))
				wantUsable(t, s.In(t), m)
			})
		}
		for _, name := range faultyStarts {
			t.Run("a plugin that "+name, func(t *testing.T) {
				t.Parallel()
				wantRefused(t, s.In(t), "mcp/"+strings.ReplaceAll(name, " ", "-"), "plugin_connection_error")
			})
		}
		for _, name := range faultyCalls {
			t.Run("a plugin that "+name, func(t *testing.T) {
				t.Parallel()
				wantGoesOn(t, s.In(t), "mcp/"+strings.ReplaceAll(name, " ", "-"), "plugin_connection_error")
			})
		}
		for _, name := range bearable {
			t.Run("a plugin that "+name, func(t *testing.T) {
				t.Parallel()
				id := "mcp/" + strings.ReplaceAll(name, " ", "-")
				wantRiver(t, s.In(t).NativeChat(withTools(useStatus, id)), "status", plugin(id))
			})
		}
	})
	peak := peakMemory(t, s.PID)
	t.Logf("at most %d MiB were used", peak>>20)
	if peak > hostilePeak {
		t.Errorf("lmcaddy used %d MiB", peak>>20)
	}
	if n := len(victim.Requests()); n > 0 {
		t.Errorf("a redirection was followed %d times", n)
	}
	if at := regexp.MustCompile(`(?i)\bpanic|goroutine \d+ \[`).FindStringIndex(s.Log()); at != nil {
		t.Errorf("in the log: %.2000s", s.Log()[max(0, at[0]-300):])
	}
	if n := len(s.Log()); n > 16<<20 {
		t.Errorf("the log has %d bytes", n)
	}
	s.Engine()
}

// TestMCPHostile_Silence has chats use servers that don't answer, all at a time.
func TestMCPHostile_Silence(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	h.WriteMCP(harness.Fields{"hangs": faulty(h, "hangs")})
	s := harness.Start(h, harness.Config{LM: append(openGates, "mcp_timeout 2s")})
	s = s.As(created(t, h, "--name", "any"))
	silent := func(method string) harness.Fields {
		m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
		m.Instead = on(method, hangs)
		return m.Ephemeral("silent")
	}
	for _, c := range []struct {
		name        string
		integration any
		kind        string // of the error; empty: the chat goes on
	}{
		{"when asked for its tools", silent("tools/list"), "mcp_connection_error"},
		{"when called", silent("tools/call"), ""},
		{"a plugin, when called", "mcp/hangs", ""},
	} {
		reply := s.Go(harness.NativeChatPath, withTools(useStatus, c.integration)) // all of them, before any is waited for
		defer t.Run(c.name, func(t *testing.T) {
			r := harness.Wait(t, "an answer", reply)
			if c.kind != "" {
				wantNativeError(t, r.Want(t, http.StatusBadRequest), c.kind)
				return
			}
			items := r.Want(t, http.StatusOK).Get("output").Array()
			if len(items) < 2 || items[0].Get("type").Str != "tool_call" {
				t.Errorf("%s", r.Body)
			}
		})
	}
}

// peakMemory is the largest resident memory that a process has had, in bytes.
func peakMemory(t testing.TB, pid int) int64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`).FindSubmatch(content)
	if line == nil {
		t.Fatalf("no VmHWM in %s", content)
	}
	kib, err := strconv.ParseInt(string(line[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// beside makes a chat, which has to end in time, while other chats are answered.
func beside(t testing.TB, s *harness.Server, chat func()) {
	t.Helper()
	begun := time.Now()
	plain, honest := s.Go(harness.NativeChatPath, harness.NativeAsk(capital)), s.Go(harness.NativeChatPath, withTools(useStatus, "mcp/honest"))
	chat()
	if took := time.Since(begun); took > hostileBound {
		t.Errorf("it took %s", took)
	}
	wantSaid(t, harness.Wait(t, "another answer", plain).Want(t, http.StatusOK).Get("@this"), paris)
	wantSaid(t, harness.Wait(t, "another answer", honest).Want(t, http.StatusOK).Get("@this"), returned+redRiver)
}

// wantRefused checks that a chat with an integration is refused with an error of a type, before its stream begins.
func wantRefused(t *testing.T, s *harness.Server, integration any, kind string) {
	t.Helper()
	beside(t, s, func() {
		r := s.Post(harness.NativeChatPath, withTools(useStatus, integration).With("stream", true))
		if r.Status != http.StatusBadRequest {
			t.Fatalf("status %d: %.1000s", r.Status, r.Body)
		}
		wantNativeError(t, r, kind)
		if len(r.Body) > 4<<10 {
			t.Errorf("the error has %d bytes: %.1000s", len(r.Body), r.Body)
		}
	})
}

// wantGoesOn checks that a chat whose tool fails goes on: an error event tells it, and it is the call's result.
func wantGoesOn(t *testing.T, s *harness.Server, integration any, kind string) {
	t.Helper()
	beside(t, s, func() {
		st := s.NativeStream(withTools(useStatus, integration))
		if len(st.ServerFaults) == 0 || st.ServerFaults[0].Get("type").Str != kind { // the model may try again
			t.Fatalf("faults %v: %.1000s", st.ServerFaults, st.Result.Raw)
		}
		call, message := st.Result.Get("output.0"), st.ServerFaults[0].Get("message").Str
		if call.Get("type").Str != "tool_call" || gjson.Get(call.Get("output").Str, "0.text").Str != message {
			t.Errorf("the error says %q, the first item is %.1000s", message, call.Raw)
		}
		if st.Fault.Exists() || !st.Result.Get("output.1").Exists() {
			t.Errorf("it doesn't go on: %s, %.1000s", st.Fault.Raw, st.Result.Raw)
		}
	})
}

// wantEndured checks that a chat goes on, whatever it is told of the result.
func wantEndured(t *testing.T, s *harness.Server, integration any) {
	t.Helper()
	beside(t, s, func() {
		body := s.NativeChat(withTools(useStatus, integration).With("max_output_tokens", 200))
		if body.Get("output.0.type").Str != "tool_call" || !json.Valid([]byte(body.Get("output.0.output").Str)) {
			t.Errorf("%.1000s", body.Raw)
		}
	})
}

// wantUsable checks that a server's tool status can be used, though another is odd: alone, and with all of them unless the
// request is told what is wrong.
func wantUsable(t *testing.T, s *harness.Server, m *harness.MCPServer) {
	t.Helper()
	beside(t, s, func() {
		only := m.Ephemeral("odd").With("allowed_tools", []string{"status"})
		wantRiver(t, s.NativeChat(withTools(useStatus, only)), "status", ephemeral("odd"))
		r := s.Post(harness.NativeChatPath, withTools(useStatus, m.Ephemeral("odd")))
		if r.Status != http.StatusOK {
			t.Errorf("status %d: %.1000s", r.Status, r.Body)
		}
	})
}
