package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// openRemote are the settings of a server whose responses may use any MCP server of this machine.
var openRemote = []string{"allow remote_mcp plugin_mcp ephemeral_mcp", "mcp_private_hosts 127.0.0.1"}

// remote is a tool of type mcp; without a URL, of a server of mcp.json.
func remote(label, url string) harness.Fields {
	tool := harness.Fields{"type": "mcp", "server_label": label, "require_approval": "never"}
	if url != "" {
		tool["server_url"] = url
	}
	return tool
}

// respondWith is a request without thinking that has tools.
func respondWith(prompt string, tools ...any) harness.Fields {
	return harness.RespondAsk(prompt).Quick().With("tools", tools)
}

// wantServerCall checks that a response has one MCP call with an output, and returns the message after it.
func wantServerCall(t testing.TB, body gjson.Result, label, tool, arguments, output string) string {
	t.Helper()
	calls := body.Get(`output.#(type=="mcp_call")#`).Array()
	if len(calls) != 1 {
		t.Fatalf("%d calls: %s", len(calls), body.Raw)
	}
	c := calls[0]
	got := []any{c.Get("server_label").Str, c.Get("name").Str, c.Get("status").Str, c.Get("output").Str, c.Get("error").Value(), gjson.Parse(c.Get("arguments").Str).Value()}
	if diff := cmp.Diff([]any{label, tool, "completed", output, nil, gjson.Parse(arguments).Value()}, got); diff != "" {
		t.Errorf("the call (-want +got):\n%s", diff)
	}
	return harness.ResponseText(body)
}

// TestResponsesMCP_RealServer: the tools of a server that the request names are called until the model has its answer.
func TestResponsesMCP_RealServer(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{LM: openRemote}, responsesMCPRealServer)
}

func responsesMCPRealServer(t *testing.T, s *harness.Server) {
	tool := remote("everything", harness.StartEverything(t, "streamableHttp")).With("allowed_tools", []string{"echo"})
	request := respondWith(useEchoTool, tool)
	body, st := s.Respond(request), s.RespondStream(request)
	if diff := cmp.Diff("created in_progress"+listItem+callItem+messageItem+" completed", st.Order()); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	for _, response := range []gjson.Result{body, st.Final, s.Stored(body.Get("id").Str)} {
		if text := wantServerCall(t, response, "everything", "echo", `{"message":"hello world"}`, "Echo: hello world"); text != returned+"Echo: hello world" {
			t.Errorf("the message is %q", text)
		}
		list := response.Get("output.0")
		if list.Get("tools.#").Int() != 1 || list.Get("tools.0.name").Str != "echo" || !list.Get("tools.0.input_schema.properties.message").Exists() {
			t.Errorf("the tools are %s", list.Raw)
		}
	}
	if diff := cmp.Diff(withoutIDs(body.Get("output")), withoutIDs(st.Final.Get("output"))); diff != "" {
		t.Errorf("in one piece (-) and streamed (+):\n%s", diff)
	}
	// The next request has the call and its result in its conversation, whichever way it gets them.
	next := harness.RespondAsk("Hello").Quick()
	byID := s.Respond(next.After(body.Get("id").Str))
	items := []any{harness.Fields{"role": "user", "content": useEchoTool}}
	for _, item := range body.Get("output").Array() {
		items = append(items, json.RawMessage(item.Raw))
	}
	resent := s.Respond(next.With("input", append(items, harness.Fields{"role": "user", "content": "Hello"})))
	if a, b := byID.Get("usage.input_tokens").Int(), resent.Get("usage.input_tokens").Int(); a != b || a < 60 {
		t.Errorf("%d input tokens by previous_response_id, %d with the same items", a, b)
	}
	again := s.Respond(respondWith("Use echo with message stone", tool).After(body.Get("id").Str))
	wantServerCall(t, again, "everything", "echo", `{"message":"stone"}`, "Echo: stone")
}

func TestResponsesMCP_Thinking(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{LM: openRemote}, responsesMCPThinking)
}

func responsesMCPThinking(t *testing.T, s *harness.Server) {
	m := harness.StartMCP(t, echoTool(redRiver))
	st := s.RespondStream(harness.RespondAsk(useEchoTool).With("tools", []any{remote("river", m.URL)}))
	if diff := cmp.Diff("created in_progress"+listItem+thoughtItem+callItem+thoughtItem+messageItem+" completed", st.Order()); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	if text := harness.ResponseText(st.Final); text != returned+redRiver {
		t.Errorf("%q", text)
	}
}

// TestResponsesMCP_WithFunctions: calls of functions end the response, calls of servers don't.
func TestResponsesMCP_WithFunctions(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openRemote})
	m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	tools := []any{sayFunction, remote("river", m.URL)}
	for _, isStream := range []bool{false, true} {
		called := respondEither(s, respondWith(useEchoTool, tools...), isStream)
		call := called.Get(`output.#(type=="function_call")`)
		if call.Get("name").Str != "echo" || harness.ResponseText(called) != "" {
			t.Fatalf("%s", called.Raw)
		}
		result := harness.Fields{"type": "function_call_output", "call_id": call.Get("call_id").Str, "output": "blue moon"}
		answer := respondEither(s, harness.RespondAsk([]any{result}).Quick().With("tools", tools).After(called.Get("id").Str), isStream)
		if text := harness.ResponseText(answer); text != returned+"blue moon" {
			t.Errorf("%q", text)
		}
		if text := wantServerCall(t, respondEither(s, respondWith(useStatus, tools...), isStream), "river", "status", "{}", redRiver); text != returned+redRiver {
			t.Errorf("%q", text)
		}
	}
}

func TestResponsesMCP_Choices(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openRemote})
	m := harness.StartMCP(t, echoTool(redRiver), statusTool(harness.Says("blue moon")))
	tool := remote("river", m.URL)
	calls := func(request harness.Fields) string {
		t.Helper()
		var names []string
		for _, call := range s.Respond(request).Get(`output.#(type=="mcp_call")#.name`).Array() {
			names = append(names, call.Str)
		}
		return strings.Join(names, " ")
	}
	for name, tt := range map[string]struct {
		request harness.Fields
		want    string
	}{
		"allowed, as a list":    {respondWith(useEchoTool, tool.With("allowed_tools", []string{"status"})), "status"},
		"allowed, as an object": {respondWith(useEchoTool, tool.With("allowed_tools", harness.Fields{"tool_names": []string{"status"}})), "status"},
		"allowed, null":         {respondWith(useStatus, tool.With("allowed_tools", nil)), "status"},
		"a tool is demanded":    {respondWith(capital, tool).With("tool_choice", harness.Fields{"type": "mcp", "server_label": "river", "name": "status"}), "status"},
		"another is demanded":   {respondWith(capital, tool).With("tool_choice", harness.Fields{"type": "mcp", "server_label": "river", "name": "echo"}), "echo"},
		"none":                  {respondWith(useStatus, tool).With("tool_choice", "none"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := calls(tt.request); got != tt.want {
				t.Errorf("calls of %q, want %q", got, tt.want)
			}
		})
	}
	limited := s.Respond(respondWith(useStatus, tool).With("max_tool_calls", 1))
	wantServerCall(t, limited, "river", "status", "{}", "blue moon")
}

// TestResponsesMCP_FailuresOfCalls: a failed call is told, and the model goes on.
func TestResponsesMCP_FailuresOfCalls(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openRemote})
	for name, tt := range map[string]struct {
		answer func(m *harness.MCPServer, w http.ResponseWriter, message gjson.Result)
		kind   string
	}{
		"the tool's own error": {func(m *harness.MCPServer, w http.ResponseWriter, message gjson.Result) {
			m.Reply(w, message, harness.Fields{"isError": true, "content": []any{harness.Fields{"type": "text", "text": redRiver}}})
		}, "mcp_tool_execution_error"},
		"an error of the protocol": {func(m *harness.MCPServer, w http.ResponseWriter, message gjson.Result) {
			m.Error(w, message, -32603, "It broke.")
		}, "mcp_tool_execution_error"},
		"an error of HTTP": {func(_ *harness.MCPServer, w http.ResponseWriter, _ gjson.Result) {
			w.WriteHeader(http.StatusBadGateway)
		}, "mcp_protocol_error"},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
			m.Instead = func(w http.ResponseWriter, _ *http.Request, message gjson.Result) bool {
				isCall := message.Get("method").Str == "tools/call"
				if isCall {
					tt.answer(m, w, message)
				}
				return isCall
			}
			request := respondWith(useStatus, remote("river", m.URL))
			body, st := s.Respond(request), s.RespondStream(request)
			failed := strings.Replace(callItem, "mcp_call.completed", "mcp_call.failed", 1)
			if diff := cmp.Diff("created in_progress"+listItem+failed+messageItem+" completed", st.Order()); diff != "" {
				t.Errorf("the events (-want +got):\n%s", diff)
			}
			for _, response := range []gjson.Result{body, st.Final} {
				call := response.Get(`output.#(type=="mcp_call")`)
				if kind := call.Get("error.type").Str; kind != tt.kind {
					t.Errorf("the error is %q, want %q: %s", kind, tt.kind, call.Raw)
				}
			}
		})
	}
}

// TestResponsesMCP_ServerThatCannotBeUsed: the request is refused before the model is asked.
func TestResponsesMCP_ServerThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openRemote})
	broken := harness.StartMCP(t)
	broken.Instead = func(w http.ResponseWriter, _ *http.Request, _ gjson.Result) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	fine := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	gone := fmt.Sprintf("http://127.0.0.1:%d/mcp?key=hunter2", harness.FreePort(t))
	for name, tools := range map[string][]any{
		"nobody listens":   {remote("river", gone)},
		"it only fails":    {remote("river", broken.URL)},
		"its URL is none":  {remote("river", "file:///etc/passwd")},
		"one of two fails": {remote("fine", fine.URL), remote("river", broken.URL)},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.In(t)
			r := s.Post(harness.RespondPath, respondWith(useStatus, tools...)).Want(t, http.StatusFailedDependency)
			wantOpenAIError(t, r, "external_connector_error", "http_error")
			if r.Get("error.param").Str != "tools" || strings.Contains(r.Body, "hunter2") || !strings.Contains(r.Body, "river") {
				t.Errorf("%s", r.Body)
			}
			st := s.RespondStream(respondWith(useStatus, tools...))
			order := " output_item.added:mcp_list_tools mcp_list_tools.in_progress mcp_list_tools.failed output_item.done error failed"
			if !strings.HasSuffix(st.Order(), order) || !strings.HasPrefix(st.Order(), "created in_progress output_item.added:mcp_list_tools") {
				t.Errorf("the events are %s", st.Order())
			}
			if st.Fault.Get("type").Str != "external_connector_error" || st.Fault.Get("param").Str != "tools" {
				t.Errorf("%s", st.Fault.Raw)
			}
		})
	}
	if strings.Contains(s.Log(), "hunter2") {
		t.Error("the query of a URL is in the log")
	}
}

func TestResponsesMCP_RefusedTools(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openRemote})
	m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	tool := remote("river", m.URL)
	without := func(name string) harness.Fields {
		copied := tool.With(name, nil)
		delete(copied, name)
		return copied
	}
	for name, tt := range map[string]struct {
		tools  []any
		status int
		param  string
	}{
		"no label":          {[]any{without("server_label")}, 400, "tools[0].server_label"},
		"two of one label":  {[]any{tool, tool}, 400, "tools[1].server_label"},
		"a connector":       {[]any{without("server_url").With("connector_id", "connector_gmail")}, 400, "tools[0].connector_id"},
		"approval, always":  {[]any{tool.With("require_approval", "always")}, 400, "tools[0].require_approval"},
		"a tool it hasn't":  {[]any{tool.With("allowed_tools", []string{"nothing"})}, 400, ""},
		"allowed, a number": {[]any{tool.With("allowed_tools", 7)}, 400, "tools[0].allowed_tools"},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.In(t).Post(harness.RespondPath, respondWith(useStatus, tt.tools...))
			if r.Status != tt.status || tt.param != "" && r.Get("error.param").Str != tt.param {
				t.Errorf("status %d, want %d and %s: %s", r.Status, tt.status, tt.param, r.Body)
			}
			wantOpenAIError(t, r, "invalid_request_error", r.Get("error.code").Str)
		})
	}
	if calls := m.Calls(); len(calls) > 0 {
		t.Errorf("calls of %v", calls)
	}
	body := s.Respond(respondWith(useStatus, without("require_approval")))
	wantServerCall(t, body, "river", "status", "{}", redRiver)
}

// TestResponsesMCP_Gates: a URL needs one gate and, on a site with tokens, a scope; a label of mcp.json two gates, and a token
// with a scope on any site.
func TestResponsesMCP_Gates(t *testing.T) {
	t.Parallel()
	m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	url, label := respondWith(useStatus, remote("river", m.URL)), respondWith(useStatus, remote("one", ""))
	open, closed := startGated(t, openRemote...), startGated(t, "allow ephemeral_mcp plugin_mcp", "mcp_private_hosts 127.0.0.1")
	halfOpen := startGated(t, "allow remote_mcp", "mcp_private_hosts 127.0.0.1")
	for _, tt := range []struct {
		name    string
		site    *harness.Server
		request harness.Fields
		scopes  string // of the token; empty: none
		status  int
		code    string
		message string
	}{
		{"a URL", open.Server, url, "", 200, "", ""},
		{"a URL, a token", open.authenticated, url, "inference,mcp.ephemeral", 200, "", ""},
		{"a URL, a token without the scope", open.authenticated, url, "inference,mcp.plugin", 403, "missing_scope", "mcp.ephemeral"},
		{"a URL, one gate is enough", halfOpen.Server, url, "", 200, "", ""},
		{"a URL, the gate is closed", closed.Server, url, "", 403, "gate_closed", "allow remote_mcp"},
		{"a label, a token", open.Server, label, "inference,mcp.plugin", 200, "", ""},
		{"a label, a token on the other site", open.authenticated, label, "inference,mcp.plugin", 200, "", ""},
		{"a label, no token", open.Server, label, "", 401, "invalid_api_key", "Authorization"},
		{"a label, a token without the scope", open.Server, label, "inference,mcp.ephemeral", 403, "missing_scope", "mcp.plugin"},
		{"a label, the first gate is closed", closed.Server, label, "inference,mcp.plugin", 403, "gate_closed", "allow remote_mcp"},
		{"a label, the second gate is closed", halfOpen.Server, label, "inference,mcp.plugin", 403, "gate_closed", "allow plugin_mcp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.site.In(t)
			if tt.scopes != "" {
				s = s.As(created(t, s.Home, "--name", tt.name, "--scopes", tt.scopes))
			}
			before := len(m.Requests())
			for _, isStream := range []bool{false, true} {
				r := s.Post(harness.RespondPath, tt.request.With("stream", isStream))
				if r.Status != tt.status || !strings.Contains(r.Body, tt.message) {
					t.Fatalf("stream %v: status %d, want %d and %q: %s", isStream, r.Status, tt.status, tt.message, r.Body)
				}
				if tt.status != http.StatusOK {
					wantOpenAIError(t, r, "invalid_request_error", tt.code)
				} else if !isStream {
					if text := harness.ResponseText(r.Response(s)); text != returned+redRiver {
						t.Errorf("%q", text)
					}
				}
			}
			if n := len(m.Requests()) - before; tt.status != http.StatusOK && n > 0 {
				t.Errorf("the server got %d requests", n)
			}
		})
	}
	unknown := open.As(created(t, open.Home, "--name", "u")).Post(harness.RespondPath, respondWith(useStatus, remote("nobody", "")))
	if unknown.Status/100 != 4 || strings.Contains(unknown.Body, open.Dir) {
		t.Errorf("a label that isn't in mcp.json: status %d: %s", unknown.Status, unknown.Body)
	}
}

// TestResponsesMCP_SecretsStayWithTheirServer: nothing repeats or keeps what a request sends to an MCP server.
func TestResponsesMCP_SecretsStayWithTheirServer(t *testing.T) {
	t.Parallel()
	const bearer, header, query = "secret-of-the-bearer", "secret-of-a-header", "secret-of-the-query"
	m := harness.StartMCP(t, statusTool(func(context.Context, gjson.Result) string { return redRiver }))
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openRemote})
	tool := remote("river", m.URL+"?key="+query).With("authorization", bearer).With("headers", harness.Fields{"X-Mine": header})
	request := respondWith(useStatus, tool)
	body := s.Respond(request)
	wantServerCall(t, body, "river", "status", "{}", redRiver)
	st := s.OpenResponse(t.Context(), request)
	st.End()
	for _, r := range m.Requests() {
		if r.Header.Get("Authorization") != "Bearer "+bearer || r.Header.Get("X-Mine") != header {
			t.Errorf("%s has %v", r.Verb, r.Header)
		}
	}
	for place, content := range map[string]string{"the response": body.Raw, "the stream": st.Raw(), "what is stored": s.Stored(body.Get("id").Str).Raw} {
		for _, secret := range []string{bearer, header, query} {
			if strings.Contains(content, secret) {
				t.Errorf("%s is in %s", secret, place)
			}
		}
	}
	if got := body.Get("tools.0.server_label").Str; got != "river" {
		t.Errorf("the tools are told as %s", body.Get("tools").Raw)
	}
	wantNotKept(t, s, bearer, header, query)
}
