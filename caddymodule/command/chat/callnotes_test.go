package chat

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// eventsOf reads the events of a chat as a server sends them.
func eventsOf(t *testing.T, lines ...string) (events []client.ChatEvent) {
	t.Helper()
	for _, line := range lines {
		var e client.ChatEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

const byFiles = `"provider_info":{"type":"plugin","plugin_id":"mcp/files"}`

func TestAnswer_CallsAreNotes(t *testing.T) {
	t.Parallel()
	events := eventsOf(t,
		`{"type":"message.start"}`, `{"type":"message.delta","content":"Let me look."}`, `{"type":"message.end"}`,
		`{"type":"tool_call.start","tool":"read_file",`+byFiles+`}`,
		`{"type":"tool_call.arguments","tool":"read_file","arguments":{"path": "hello.txt", "lines": [1, 2]},`+byFiles+`}`,
		`{"type":"tool_call.success","tool":"read_file","arguments":{},"output":"[{\"type\":\"text\",\"text\":\"Hello\\nworld\"},{\"type\":\"image\"}]",`+byFiles+`}`,
		`{"type":"tool_call.failure","reason":"There is no tool \"rm\".","metadata":{"type":"invalid_name","tool_name":"rm"}}`,
		`{"type":"tool_call.failure","reason":"\"path\" is missing.","metadata":{"type":"invalid_arguments","tool_name":"read_file","arguments":{"a": 1},`+byFiles+`}}`,
		`{"type":"tool_call.arguments","tool":"list","arguments":{},`+byFiles+`}`,
		`{"type":"tool_call.success","tool":"list","arguments":{},"output":"[]",`+byFiles+`}`,
		`{"type":"message.start"}`, `{"type":"message.delta","content":"\n\nIt says hello."}`,
	)
	const wantOut = "Let me look.\nIt says hello.\n"
	notes := []string{
		`→ read_file({"path":"hello.txt","lines":[1,2]})`, `← read_file: Hello world [image]`, `✗ rm: There is no tool "rm".`,
		`✗ read_file({"a":1}): "path" is missing.`, `→ list()`, `← list: (nothing)`,
	}
	out, aside := answerOf(t, false, events...)
	if diff := cmp.Diff(wantOut, out); diff != "" {
		t.Errorf("standard output (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(strings.Join(notes, "\n")+"\n", aside); diff != "" {
		t.Errorf("standard error (-want +got):\n%s", diff)
	}
	out, aside = answerOf(t, true, events...)
	if out != wantOut || !strings.Contains(aside, terminal.Dim+"calling read_file…"+terminal.Plain) {
		t.Errorf("on a terminal: %q, %q", out, aside)
	}
	for _, note := range notes {
		if !strings.Contains(aside, terminal.Dim+note+terminal.Plain+"\n") {
			t.Errorf("on a terminal, %q isn't in %q", note, aside)
		}
	}
}

// TestAnswer_NotesBeginALine: where both streams are one terminal, a note isn't put behind half a line.
func TestAnswer_NotesBeginALine(t *testing.T) {
	t.Parallel()
	var both bytes.Buffer
	p := newAnswerPrinter(&both, &both)
	p.terminal, p.colored = true, true
	for _, e := range eventsOf(t,
		`{"type":"message.delta","content":"Let me look."}`, `{"type":"tool_call.arguments","tool":"a","arguments":{}}`,
		`{"type":"reasoning.delta","content":"Hm."}`, `{"type":"tool_call.success","tool":"a","output":"[]"}`, `{"type":"message.delta","content":"It is."}`,
	) {
		if err := p.show(e); err != nil {
			t.Fatal(err)
		}
	}
	want := "Let me look.\n" + terminal.Dim + "→ a()" + terminal.Plain + "\n" + terminal.Dim + "Hm." + terminal.Plain + "\n" + terminal.Dim + "← a: (nothing)" + terminal.Plain + "\nIt is."
	if diff := cmp.Diff(want, both.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCallNote_IsOneSafeLine: neither a model nor a server can write over the terminal.
func TestCallNote_IsOneSafeLine(t *testing.T) {
	t.Parallel()
	for _, e := range []client.ChatEvent{
		{Type: "tool_call.arguments", Tool: "a\x1b[2J\nb", Arguments: json.RawMessage("{\"\u202e\":\n\"\u009b1m\"}")},
		{Type: "tool_call.success", Tool: "a", Output: "not JSON\r\x1b]0;x\a"},
		{Type: "tool_call.success", Tool: "a", Output: `[{"type":"text","text":"\u001b[2J\u2028"},{"type":"\u0007"}]`},
		{Type: "tool_call.failure", Reason: "\b\b\b", Invalid: client.FailedCall{Tool: "\t"}},
	} {
		if line := callNote(e); strings.ContainsAny(line, "\x1b\a\b\r\n\t\u202e\u009b\u2028") {
			t.Errorf("%+v: %q", e, line)
		}
	}
}

// chatWith runs `lmcaddy chat` with a server that gives one answer, and returns what the server was sent.
func chatWith(t *testing.T, status int, answer string, arguments ...string) (sent, stdout, stderr string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		if status == http.StatusOK {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	cmd := &cobra.Command{Use: "chat", SilenceUsage: true}
	Define(cmd)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(append([]string{"tinychat", "--prompt", "Hi", "--host", server.URL}, arguments...))
	err = cmd.ExecuteContext(t.Context())
	return sent, out.String(), errs.String(), err
}

func TestChat_Integrations(t *testing.T) {
	t.Parallel()
	const answer = "data: {\"type\":\"chat.start\"}\n\n" +
		`data: {"type":"tool_call.arguments","tool":"echo","arguments":{"message":"Hi"},` + byFiles + "}\n\n" +
		"data: {\"type\":\"message.delta\",\"content\":\"Hi\"}\n\ndata: {\"type\":\"chat.end\",\"result\":{}}\n\n"
	for name, tt := range map[string]struct {
		arguments []string
		want      string // in the request
	}{
		"none":       {nil, `{"model":"tinychat","input":"Hi","store":false,"stream":true}`},
		"one":        {[]string{"--mcp", "files"}, `"integrations":["mcp/files"]`},
		"with mcp/":  {[]string{"--mcp", "mcp/files"}, `"integrations":["mcp/files"]`},
		"several":    {[]string{"--mcp", "files, maths", "--mcp", "files", "--mcp", "Web Search"}, `"integrations":["mcp/files","mcp/maths","mcp/Web Search"]`},
		"the prompt": {[]string{"--mcp", "files", "--system", "x"}, `"system_prompt":"x","integrations":["mcp/files"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent, out, notes, err := chatWith(t, http.StatusOK, answer, tt.arguments...)
			if err != nil || !strings.Contains(sent, tt.want) {
				t.Errorf("%v: %s", err, sent)
			}
			if out != "Hi\n" || notes != "→ echo({\"message\":\"Hi\"})\n" {
				t.Errorf("%q, %q", out, notes)
			}
		})
	}
	const (
		died = `data: {"type":"error","error":{"type":"plugin_connection_error","message":"The server died."}}` + "\n\n"
		end  = "data: {\"type\":\"chat.end\",\"result\":{}}\n\n"
	)
	_, out, notes, err := chatWith(t, http.StatusOK, died+died+answer, "--mcp", "files")
	if err != nil || out != "Hi\n" || !strings.HasPrefix(notes, "✗ The server died.\n✗ The server died.\n→ echo") {
		t.Errorf("a server that died: %v, %q, %q", err, out, notes)
	}
	for _, died := range []string{died, strings.ReplaceAll(died, "plugin_connection_error", "internal_error") + answer[:strings.Index(answer, "data: {\"type\":\"chat.end\"")]} {
		if _, _, notes, err := chatWith(t, http.StatusOK, died+end, "--mcp", "files"); err == nil || err.Error() != "The server died." || strings.Contains(notes, "✗") {
			t.Errorf("what ends the chat: %v, %q", err, notes)
		}
	}
	if sent, _, _, err := chatWith(t, http.StatusOK, answer, "--mcp", "files,"); err == nil || sent != "" {
		t.Errorf("an empty name: %v, %s", err, sent)
	}
}

// TestChat_IntegrationsRefused: an error says what to do.
func TestChat_IntegrationsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		answer string
		want   []string
	}{
		"no token":    {401, `{"error":{"code":"invalid_api_key","message":"Plugins need a token."}}`, []string{"Plugins need a token", "--token", "LM_API_TOKEN"}},
		"closed gate": {403, `{"error":{"code":"gate_closed","message":"Plugins are off."}}`, []string{"Plugins are off", "lmcaddy serve --allow plugin_mcp"}},
		"scope":       {403, `{"error":{"code":"missing_scope","message":"It lacks the scope mcp.plugin."}}`, []string{"mcp.plugin", "lmcaddy token edit"}},
		"another":     {403, `{"error":{"code":"model_not_allowed","message":"Not this model."}}`, []string{"Not this model."}},
		"unknown":     {400, `{"error":{"type":"plugin_connection_error","message":"There is no \"file\"."}}`, []string{`There is no "file".`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, out, _, err := chatWith(t, tt.status, tt.answer, "--mcp", "file")
			if err == nil || out != "" {
				t.Fatalf("%v, %q", err, out)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q isn't in %q", part, err)
				}
			}
		})
	}
}
