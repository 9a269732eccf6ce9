package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// What the shipped model does with tools, at temperature 0 and without thinking (tried with each wording below):
//   - "Use NAME with ARG VALUE and ARG VALUE" and "Use NAME." call an offered tool, also of the 13 of server-everything and
//     the 14 of server-filesystem; "NAME" may have a prefix, and need not be a word it knows. If the tool isn't offered, it calls
//     one that is, since llama-server's grammar allows no other.
//   - Words, small numbers and names such as hello.txt are copied to arguments, and "red river" and "Echo: hello world" to the
//     answer: "The tool returned: red river". Paths and brackets are not: those results are checked in the call alone.
//   - Of "The sum of 20 and 30 is 50." it makes "The tool returned: sum of 20, 20, 305 50" or the like: the sum is last.
const (
	useEchoTool = "Use echo with message hello world"
	useSum      = "Use get-sum with a 20 and b 30"
	useStatus   = "Use status."
	redRiver    = "red river"
	returned    = "The tool returned: "
)

// callEvents are the events of a call.
const callEvents = " tool_call.start tool_call.arguments tool_call.success"

// Settings of a server whose chats may use any server of this machine.
var openGates = []string{"allow ephemeral_mcp plugin_mcp", "mcp_private_hosts 127.0.0.1"}

// withTools is a chat without thinking that may use integrations.
func withTools(prompt string, integrations ...any) harness.Fields {
	return harness.NativeAsk(prompt).With("reasoning", "off").With("integrations", integrations)
}

// toolCall is the item of a call that returned one text.
func toolCall(tool string, arguments, provider map[string]any, text string) map[string]any {
	return map[string]any{"type": "tool_call", "tool": tool, "arguments": arguments, "output": harness.TextContent(text), "provider_info": provider}
}

func ephemeral(label string) map[string]any {
	return map[string]any{"type": "ephemeral_mcp", "server_label": label}
}

func plugin(id string) map[string]any { return map[string]any{"type": "plugin", "plugin_id": id} }

// statusTool is a tool without arguments, whose result the model repeats.
func statusTool(run func(context.Context, gjson.Result) string) harness.MCPTool {
	return harness.MCPTool{Name: "status", Run: run}
}

// echoTool is a tool that returns the same text every time.
func echoTool(text string) harness.MCPTool {
	const schema = `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`
	return harness.MCPTool{Name: "echo", Schema: schema, Run: harness.Says(text)}
}

// wantCalled checks that an answer consists of one call and a message, and returns the message.
func wantCalled(t testing.TB, body gjson.Result, call map[string]any) (message string) {
	t.Helper()
	message = harness.NativeText(body, "message")
	want := []any{call, map[string]any{"type": "message", "content": message}}
	if diff := cmp.Diff(any(want), body.Get("output").Value()); diff != "" {
		t.Errorf("the output (-want +got):\n%s", diff)
	}
	return message
}

// wantRiver checks that the model has called a tool that returned redRiver, and repeated it.
func wantRiver(t testing.TB, body gjson.Result, tool string, provider map[string]any) {
	t.Helper()
	if message := wantCalled(t, body, toolCall(tool, map[string]any{}, provider, redRiver)); message != returned+redRiver {
		t.Errorf("the message is %q", message)
	}
}

func TestMCP_RealServerOverEachTransport(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{LM: openGates}, mcpRealServerOverEachTransport)
}

func mcpRealServerOverEachTransport(t *testing.T, s *harness.Server) {
	for transport, url := range map[string]string{
		"streamable HTTP": harness.StartEverything(t, "streamableHttp"),
		"legacy SSE":      harness.StartEverything(t, "sse"),
	} {
		for _, c := range []struct {
			tool, prompt string
			arguments    map[string]any
			output       string
			answer       string // how the message ends
		}{
			{"echo", useEchoTool, map[string]any{"message": "hello world"}, "Echo: hello world", returned + "Echo: hello world"},
			{"get-sum", useSum, map[string]any{"a": 20.0, "b": 30.0}, "The sum of 20 and 30 is 50.", " 50"},
		} {
			t.Run(transport+", "+c.tool, func(t *testing.T) {
				s := s.In(t)
				server := harness.Ephemeral("everything", url).With("allowed_tools", []string{"echo", "get-sum"})
				request := withTools(c.prompt, server)
				call := toolCall(c.tool, c.arguments, ephemeral("everything"), c.output)
				s.NativeChat(request) // so that the model is loaded
				body := s.NativeChat(request)
				if message := wantCalled(t, body, call); !strings.HasSuffix(message, c.answer) {
					t.Errorf("the message is %q, want %q at its end", message, c.answer)
				}
				wantSummedStats(t, s, body, c.prompt)

				st := s.NativeStream(request)
				order := "chat.start" + promptEvents + callEvents + promptEvents + messageEvents + " chat.end"
				if diff := cmp.Diff(order, st.Order()); diff != "" {
					t.Errorf("the events (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(body.Get("output").Value(), st.Result.Get("output").Value()); diff != "" {
					t.Errorf("in one piece (-) and streamed (+):\n%s", diff)
				}
				wantSummedStats(t, s, st.Result, c.prompt)
			})
		}
	}
}

// What isn't text is in the call; a model that can't see is told what it is.
func TestMCP_ImageAsAResult(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openGates})
	server := harness.Ephemeral("everything", harness.StartEverything(t, "streamableHttp")).With("allowed_tools", []string{"get-tiny-image"})
	body := s.NativeChat(withTools("Use get-tiny-image.", server))
	if kinds := gjson.Get(body.Get("output.0.output").Str, "#.type").Raw; kinds != `["text","image","text"]` {
		t.Errorf("the result's kinds are %s: %s", kinds, body.Raw)
	}
	if n := body.Get("stats.input_tokens").Int(); n > 300 { // the image alone has thousands of characters
		t.Errorf("%d input tokens", n)
	}
}

// wantSummedStats checks the stats of an answer with one call of echo or get-sum against the rounds made by hand, where the
// client runs the tools: the last round's prompt, and the output of both.
func wantSummedStats(t testing.TB, s *harness.Server, body gjson.Result, prompt string) {
	t.Helper()
	number := harness.Fields{"type": "number"}
	tool := func(name string, properties harness.Fields) harness.Fields {
		return harness.Fields{"type": "function", "function": harness.Fields{"name": name, "parameters": harness.Fields{"type": "object", "properties": properties}}}
	}
	messages := []any{harness.Fields{"role": "user", "content": prompt}}
	request := harness.Ask("").With("reasoning_effort", "none").With("tools", []any{
		tool("echo", harness.Fields{"message": harness.Fields{"type": "string"}}), tool("get-sum", harness.Fields{"a": number, "b": number}),
	})
	first := s.Post(harness.ChatPath, request.With("messages", messages)).Want(t, http.StatusOK)
	call := body.Get("output.0")
	messages = append(messages,
		json.RawMessage(first.Get("choices.0.message").Raw),
		harness.Fields{
			"role": "tool", "tool_call_id": first.Get("choices.0.message.tool_calls.0.id").Str,
			"content": gjson.Get(call.Get("output").Str, "0.text").Str,
		})
	second := s.Post(harness.ChatPath, request.With("messages", messages)).Want(t, http.StatusOK)
	stats := body.Get("stats")
	if want, got := second.Get("usage.prompt_tokens").Int(), stats.Get("input_tokens").Int(); got != want {
		t.Errorf("input_tokens is %d; the last prompt has %d", got, want)
	}
	want := first.Get("usage.completion_tokens").Int() + second.Get("usage.completion_tokens").Int()
	if got := stats.Get("total_output_tokens").Int(); got != want {
		t.Errorf("total_output_tokens is %d; the rounds have %d together", got, want)
	}
	if n := stats.Get("reasoning_output_tokens").Int(); n != 0 {
		t.Errorf("reasoning_output_tokens is %d", n)
	}
}

func TestMCP_ThinkingBeforeAndAfterACall(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{LM: openGates}, mcpThinkingBeforeAndAfterACall)
}

func mcpThinkingBeforeAndAfterACall(t *testing.T, s *harness.Server) {
	m := harness.StartMCP(t, echoTool(redRiver))
	st := s.NativeStream(withTools(useEchoTool, m.Ephemeral("river")).With("reasoning", "on"))
	order := "chat.start" + loadEvents + promptEvents + thoughtEvents + callEvents + promptEvents + thoughtEvents + messageEvents + " chat.end"
	if diff := cmp.Diff(order, st.Order()); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	if said := st.Text("message"); said != returned+redRiver {
		t.Errorf("the message is %q", said)
	}
	stats := st.Result.Get("stats")
	if thought, all := stats.Get("reasoning_output_tokens").Int(), stats.Get("total_output_tokens").Int(); thought == 0 || thought >= all {
		t.Errorf("stats %s", stats.Raw)
	}
}

func TestMCP_StoredConversationsKeepCalls(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{LM: openGates}, mcpStoredConversationsKeepCalls)
}

func mcpStoredConversationsKeepCalls(t *testing.T, s *harness.Server) {
	m := harness.StartMCP(t, echoTool(redRiver))
	first := s.NativeChat(withTools(useEchoTool, m.Ephemeral("river")))
	id := first.Get("response_id").Str
	stored := s.Get(harness.ResponsesPath+id).Want(t, http.StatusOK)
	if diff := cmp.Diff(first.Get("output").Value(), stored.Get("output").Value()); diff != "" {
		t.Errorf("the output, answered (-) and stored (+):\n%s", diff)
	}
	wantCalled(t, stored.Get("@this"), toolCall("echo", map[string]any{"message": "hello world"}, ephemeral("river"), redRiver))

	goOn := harness.NativeAsk("Hello").With("reasoning", "off")
	continued := s.NativeChat(goOn.After(id)) // integrations aren't inherited
	if n := len(continued.Get("output").Array()); n != 1 || len(m.Calls()) != 1 {
		t.Errorf("%d calls, then %s", len(m.Calls()), continued.Raw)
	}
	// The model gets the call and its result. Without them the conversation would be the same as after the words alone.
	told := s.NativeChat(harness.NativeAsk(useEchoTool).With("reasoning", "off").With("max_output_tokens", 8))
	alone := s.NativeChat(goOn.After(told.Get("response_id").Str))
	const call = 30 // tokens, at least: <tool_call> {"name": "echo", "arguments": {"message": "hello world"}} …
	if with, without := continued.Get("stats.input_tokens").Int(), alone.Get("stats.input_tokens").Int(); with < without+call {
		t.Errorf("%d input tokens with the call, %d without", with, without)
	}
	again := s.NativeChat(withTools("Use echo with message stone", m.Ephemeral("river")).After(id))
	wantCalled(t, again, toolCall("echo", map[string]any{"message": "stone"}, ephemeral("river"), redRiver))
}

func TestMCP_ToolsOfOneNameStayApart(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openGates})
	garden, forest := harness.StartMCP(t, echoTool("green cloud"), statusTool(harness.Says(redRiver))), harness.StartMCP(t, echoTool("blue moon"))
	both := []any{garden.Ephemeral("garden"), forest.Ephemeral("forest")}
	for label, says := range map[string]string{"garden": "green cloud", "forest": "blue moon"} {
		body := s.NativeChat(withTools(fmt.Sprintf("Use %s_echo with message stone", label), both...))
		wantCalled(t, body, toolCall("echo", map[string]any{"message": "stone"}, ephemeral(label), says))
	}
	wantRiver(t, s.NativeChat(withTools(useStatus, both...)), "status", ephemeral("garden")) // only one has it
	if diff := cmp.Diff([][]string{{"echo", "status"}, {"echo"}}, [][]string{inOrder(garden.Calls()), forest.Calls()}); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	twice := s.Post(harness.NativeChatPath, withTools(useStatus, garden.Ephemeral("garden"), forest.Ephemeral("garden"))).Want(t, http.StatusBadRequest)
	wantNativeError(t, twice, "invalid_request")
}

func TestMCP_AllowedToolsNarrowWhatIsOffered(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openGates})
	both, one := harness.StartMCP(t, echoTool("blue moon"), statusTool(harness.Says(redRiver))), harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	inputs := func(integrations ...any) int64 {
		t.Helper()
		return s.NativeChat(withTools(useStatus, integrations...)).Get("stats.input_tokens").Int()
	}
	server := both.Ephemeral("garden")
	s.NativeChat(withTools(useEchoTool, server.With("allowed_tools", []string{"status"}))) // the model would call echo
	if calls := both.Calls(); slices.Contains(calls, "echo") {
		t.Errorf("calls of %v; echo is not allowed", calls)
	}
	if got, want := inputs(server.With("allowed_tools", []string{"status"})), inputs(one.Ephemeral("garden")); got != want {
		t.Errorf("%d input tokens with one of two tools allowed, %d with a server that has only that one", got, want)
	}
	if got, all := inputs(server.With("allowed_tools", []string{"status"})), inputs(server); got >= all {
		t.Errorf("%d input tokens with one of two tools allowed, %d with both", got, all)
	}
	none := s.NativeChat(withTools("Hello", server.With("allowed_tools", []string{}))).Get("stats.input_tokens").Int()
	if without := s.NativeChat(harness.NativeAsk("Hello").With("reasoning", "off")).Get("stats.input_tokens").Int(); none != without {
		t.Errorf("%d input tokens with no tool allowed, %d without a server", none, without)
	}
	unknown := s.Post(harness.NativeChatPath, withTools(useStatus, server.With("allowed_tools", []string{"nothing"}))).Want(t, http.StatusBadRequest)
	wantNativeError(t, unknown, "invalid_request")
}

func TestMCP_SessionsAndToolListsAreKept(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openGates})
	m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	for range 6 {
		wantRiver(t, s.NativeChat(withTools(useStatus, m.Ephemeral("river"))), "status", ephemeral("river"))
	}
	if sessions := m.Count("initialize"); sessions != 1 {
		t.Errorf("6 chats made %d sessions", sessions)
	}
	if lists := m.Count("tools/list"); lists > 2 { // once more when changes are told, since one may have come before
		t.Errorf("6 chats asked %d times for the tools", lists)
	}
	harness.Eventually(t, harness.Patience, "it listens for changes", func() bool { return m.Listeners() == 1 })
	m.SetTools(harness.MCPTool{Name: "search", Run: harness.Says(redRiver)})
	harness.Eventually(t, harness.Patience, "the new tool is offered", func() bool {
		return s.NativeChat(withTools("Use search.", m.Ephemeral("river"))).Get("output.0.tool").Str == "search"
	})

	s.NativeChat(withTools("Use search.", m.Ephemeral("river").With("headers", harness.Fields{"Authorization": "Bearer another"})))
	if sessions := m.Count("initialize"); sessions != 2 {
		t.Errorf("there are %d sessions after a chat with another header, want 2", sessions)
	}
	s.NativeChat(withTools("Use search.", m.Ephemeral("river")))
	if sessions := m.Count("initialize"); sessions != 2 {
		t.Errorf("there are %d sessions, want 2: the first is still there", sessions)
	}
}

// A server that was restarted doesn't know the sessions it had.
func TestMCP_SessionThatTheServerForgotIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{LM: openGates})
	var runs atomic.Int32
	m := harness.StartMCP(t, statusTool(func(context.Context, gjson.Result) string {
		runs.Add(1)
		return redRiver
	}))
	for i := range 3 {
		m.ForgetSessions()
		wantRiver(t, s.NativeChat(withTools(useStatus, m.Ephemeral("river"))), "status", ephemeral("river"))
		if sessions := m.Count("initialize"); sessions != i+1 {
			t.Errorf("chat %d: %d sessions were made", i+1, sessions)
		}
	}
	if n := runs.Load(); n != 3 {
		t.Errorf("the tool ran %d times for 3 chats", n)
	}
}

func TestMCP_SessionsAreNotSharedByOwners(t *testing.T) {
	t.Parallel()
	site := startGated(t, openGates...)
	m := harness.StartMCP(t, statusTool(harness.Says(redRiver)))
	one, two := created(t, site.Home, "--name", "one"), created(t, site.Home, "--name", "two")
	for _, token := range []string{one, two, one, two} {
		body := site.authenticated.As(token).NativeChat(withTools(useStatus, m.Ephemeral("river")))
		wantRiver(t, body, "status", ephemeral("river"))
	}
	if sessions := m.Count("initialize"); sessions != 2 {
		t.Errorf("there are %d sessions of two owners", sessions)
	}
}

// inOrder returns names in alphabetical order.
func inOrder(names []string) []string { return slices.Sorted(slices.Values(names)) }
