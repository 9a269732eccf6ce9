package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// toolServer is a real MCP server in this process, with the tools echo, wait and die.
type toolServer struct {
	*httptest.Server
	mcp       *mcpserver.MCPServer
	waiting   chan struct{} // receives when wait is called
	cancelled chan struct{} // receives when that call is cancelled
	calls     atomic.Int32
}

func serveTools(t *testing.T) *toolServer {
	t.Helper()
	s := &toolServer{waiting: make(chan struct{}, 8), cancelled: make(chan struct{}, 8)}
	tools := mcpserver.NewMCPServer("test", "1")
	s.mcp = tools
	tools.AddTool(mcp.NewTool("echo", mcp.WithDescription("Echoes."), mcp.WithString("message", mcp.Required())), func(_ context.Context, rq mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.calls.Add(1)
		return mcp.NewToolResultText("Echo: " + rq.GetString("message", "")), nil
	})
	tools.AddTool(mcp.NewTool("wait"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.waiting <- struct{}{}
		<-ctx.Done()
		s.cancelled <- struct{}{}
		return nil, ctx.Err()
	})
	tools.AddTool(mcp.NewTool("die"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		panic(http.ErrAbortHandler)
	})
	s.Server = httptest.NewServer(mcpserver.NewStreamableHTTPServer(tools))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// ephemeral is the integrations of a request that names the server.
func (s *toolServer) ephemeral(more string) string {
	return `,"integrations":[{"type":"ephemeral_mcp","server_label":"tools","server_url":"` + s.URL + `/mcp"` + more + `}]`
}

// withMCP opens the gates.
func withMCP(_ *endpoint.Config, settings *node.Settings) {
	settings.Gates.EphemeralMCP, settings.Gates.PluginMCP = true, true
	settings.MCP.PrivateHosts = []string{"127.0.0.1"}
}

// callsThen scripts a model that makes calls, and then says something.
func callsThen(say string, calls ...fakeengine.ToolCall) *fakeengine.Script {
	return &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Calls: calls}, AfterTools: []fakeengine.Answer{{Text: say}}}}}
}

const (
	echoArguments = `{"message":"hi"}`
	echoed        = `{"type":"tool_call","tool":"echo","arguments":{"message":"hi"},"output":"[{\"type\":\"text\",\"text\":\"Echo: hi\"}]","provider_info":{"type":"ephemeral_mcp","server_label":"tools"}}`
)

var echo = fakeengine.ToolCall{Name: "echo", Arguments: echoArguments}

func TestIntegrations_OneBody(t *testing.T) {
	t.Parallel()
	s, tools := serve(t, callsThen("It said hi.", echo), withMCP), serveTools(t)
	got := s.native("Use echo.", tools.ephemeral(""))
	want := `[` + echoed + `,{"type":"message","content":"It said hi."}]`
	if diff := cmp.Diff(want, gjson.Get(got.body, "output").Raw); got.status != http.StatusOK || diff != "" {
		t.Fatalf("%d %s\n%s", got.status, got.body, diff)
	}
	rounds := s.sent()
	if len(rounds) != 2 || !strings.Contains(rounds[0], `"name":"echo"`) || !strings.Contains(rounds[1], `"role":"tool","content":"Echo: hi"`) {
		t.Errorf("the engine was sent %q", rounds)
	}
	stats := gjson.Get(got.body, "stats")
	if first := int64(len(strings.Fields(rounds[0]))); stats.Get("input_tokens").Int() <= first/100 || stats.Get("total_output_tokens").Int() < 4 {
		t.Errorf("stats: %s", stats.Raw)
	}

	// The conversation goes on with its calls.
	again := s.native("And now?", `,"previous_response_id":"`+gjson.Get(got.body, "response_id").Str+`"`)
	third := s.sent()[2]
	if again.status != http.StatusOK || !strings.Contains(third, `\"message\":\"hi\"`) || !strings.Contains(third, `"content":"Echo: hi"`) || strings.Contains(third, `"tools"`) {
		t.Errorf("%d; the engine was sent %s", again.status, third)
	}
	stored := s.do("GET", "/api/v1/responses/"+gjson.Get(got.body, "response_id").Str, "")
	if diff := cmp.Diff(want, gjson.Get(stored.body, "output").Raw); diff != "" {
		t.Errorf("%s\n%s", stored.body, diff)
	}
}

func TestIntegrations_Stream(t *testing.T) {
	t.Parallel()
	s, tools := serve(t, callsThen("It said hi.", echo), withMCP), serveTools(t)
	st := s.nativeStream("Use echo.", tools.ephemeral(""))
	order, fault, result := st.rest()
	wantOrder(t, order, "chat.start"+nativeLoaded+nativePrompt+" tool_call.start tool_call.arguments tool_call.success"+nativePrompt+nativeMessage+" chat.end")
	if fault.Exists() || result.Get("output.0").Raw != echoed {
		t.Errorf("%s %s", fault.Raw, result.Raw)
	}
}

// The model gets as much of large results as the context has room for; the client gets all of them.
func TestIntegrations_LargeResults(t *testing.T) {
	t.Parallel()
	const length, prompt = 4096, 1000 // tokens
	page := fakeengine.ToolCall{Name: "page", Arguments: "{}"}
	script := callsThen("Long.", page, page)
	script.Rules[0].PromptTokens = prompt
	s, tools := serve(t, script, withMCP), serveTools(t)
	text := strings.Repeat("many words ", 300_000)
	tools.mcp.AddTool(mcp.NewTool("page"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(text), nil
	})
	got := s.native("Read the pages.", fmt.Sprintf(`,"context_length":%d`, length)+tools.ephemeral(""))
	for i := range 2 {
		if output := gjson.Get(gjson.Get(got.body, fmt.Sprintf("output.%d.output", i)).Str, "0.text").Str; output != text {
			t.Errorf("the client gets %d bytes: %.300s", len(output), got.body)
		}
	}
	var given []string
	gjson.Get(s.sent()[1], "messages").ForEach(func(_, message gjson.Result) bool {
		if message.Get("role").Str == "tool" {
			given = append(given, message.Get("content").Str)
		}
		return true
	})
	if len(given) != 2 || given[0] != given[1] || !strings.HasSuffix(given[0], " more bytes were left out.]") {
		t.Fatalf("the engine was sent %.9999s", s.sent()[1])
	}
	if n, room := 2*len(strings.Fields(given[0])), length-prompt; n < room/3 || n > room/2+50 {
		t.Errorf("the model gets %d words for a room of %d tokens", n, room)
	}
}

func TestIntegrations_InvalidCalls(t *testing.T) {
	t.Parallel()
	wrong := []fakeengine.ToolCall{{Name: "fly", Arguments: `{"to":"Rome"}`}, {Name: "echo", Arguments: `{"message":1}`}}
	script := &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Calls: wrong}, AfterTools: []fakeengine.Answer{{Calls: []fakeengine.ToolCall{echo}}, {Text: "Now."}}}}}
	s, tools := serve(t, script, withMCP), serveTools(t)
	st := s.nativeStream("Use echo.", tools.ephemeral(""))
	order, _, result := st.rest()
	wantOrder(t, order, "chat.start"+nativeLoaded+nativePrompt+" tool_call.failure tool_call.start tool_call.arguments tool_call.failure"+
		nativePrompt+" tool_call.start tool_call.arguments tool_call.success"+nativePrompt+nativeMessage+" chat.end")
	var got []string
	for _, item := range result.Get("output").Array() {
		got = append(got, item.Raw)
	}
	want := []string{
		`{"type":"invalid_tool_call","reason":"Cannot find tool with name \"fly\". The tools are: die, echo, wait.","metadata":{"type":"invalid_name","tool_name":"fly"}}`,
		`{"type":"invalid_tool_call","reason":"The arguments don't fit the tool's schema: at '/message': got number, want string","metadata":{"type":"invalid_arguments","tool_name":"echo","arguments":{"message":1},"provider_info":{"type":"ephemeral_mcp","server_label":"tools"}}}`,
		echoed, `{"type":"message","content":"Now."}`,
	}
	if diff := cmp.Diff(want, got); diff != "" || tools.calls.Load() != 1 {
		t.Errorf("%d calls\n%s", tools.calls.Load(), diff)
	}
	if second := s.sent()[1]; !strings.Contains(second, "Cannot find tool with name") || !strings.Contains(second, "want string") {
		t.Errorf("the model was told %s", second)
	}
}

// TestIntegrations_Permission: who may use which servers.
func TestIntegrations_Permission(t *testing.T) {
	t.Parallel()
	closed, opened := serve(t, &fakeengine.Script{}), serve(t, callsThen("Done.", echo), withMCP)
	tools := serveTools(t)
	opened.configure(`{"mcpServers":{"my_Tools":{"url":"` + tools.URL + `/mcp"}}}`)
	locked := guarded(opened)
	full, _ := opened.token(access.Token{})
	poor, _ := opened.token(access.Token{Scopes: []access.Scope{access.ScopeInference}})
	const plugin = `,"integrations":["mcp/my-tools"]`
	bearer := func(secret string) []string { return []string{"Authorization", "Bearer " + secret} }
	for name, tt := range map[string]struct {
		s      *server
		more   string
		header []string
		status int
		want   string
	}{
		"ephemeral, closed":            {closed, tools.ephemeral(""), nil, 403, "allow ephemeral_mcp"},
		"plugin, closed":               {closed, plugin, nil, 403, "allow plugin_mcp"},
		"ephemeral, no authentication": {opened, tools.ephemeral(""), nil, 200, ""},
		"plugin, no token":             {opened, plugin, nil, 401, "Authorization header"},
		"plugin, a wrong token":        {opened, plugin, bearer("sk-lm-aaaaaaaa:bbbbbbbbbbbbbbbbbbbbbbbb"), 401, "not valid"},
		"plugin, a token elsewhere":    {opened, plugin, []string{"X-Api-Key", full}, 401, "Authorization header"},
		"plugin, a token":              {opened, plugin, bearer(full), 200, ""},
		"plugin, no scope":             {opened, plugin, bearer(poor), 403, "mcp.plugin"},
		"plugin as written":            {opened, `,"integrations":[{"type":"plugin","id":"mcp/my_Tools","allowed_tools":["echo"]}]`, bearer(full), 200, ""},
		"locked, ephemeral":            {locked, tools.ephemeral(""), bearer(full), 200, ""},
		"locked, ephemeral, no scope":  {locked, tools.ephemeral(""), bearer(poor), 403, "mcp.ephemeral"},
		"locked, plugin by a key":      {locked, plugin, []string{"X-Api-Key", full}, 401, "Authorization header"},
		"locked, plugin":               {locked, plugin, bearer(full), 200, ""},
		"locked, nothing":              {locked, plugin, nil, 401, "API token"},
		"no such plugin":               {opened, `,"integrations":["mcp/none"]`, bearer(full), 400, "There are: my_Tools"},
		"no plugin's id":               {opened, `,"integrations":["none"]`, bearer(full), 400, "mcp/label"},
		"twice":                        {opened, `,"integrations":["mcp/a","mcp/a"]`, bearer(full), 400, "once"},
		"a private address":            {opened, `,"integrations":[{"type":"ephemeral_mcp","server_label":"l","server_url":"http://127.0.0.2:1/mcp"}]`, nil, 400, "non-public address"},
		"nobody there":                 {opened, `,"integrations":[{"type":"ephemeral_mcp","server_label":"l","server_url":"http://127.0.0.1:1/mcp"}]`, nil, 400, "l"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tt.s.do("POST", "/api/v1/chat", `{"model":"tinychat","input":"Use echo."`+tt.more+`}`, tt.header...)
			if got.status != tt.status || !strings.Contains(got.body, tt.want) {
				t.Fatalf("%d %s, want %d %s", got.status, got.body, tt.status, tt.want)
			}
			kind := gjson.Get(got.body, "error.type").Str
			isPlugin := strings.Contains(name, "plugin")
			if got.status == 400 && name != "twice" && kind != map[bool]string{true: "plugin_connection_error", false: "mcp_connection_error"}[isPlugin] {
				t.Errorf("the type is %s", kind)
			}
			if got.status == 200 && gjson.Get(got.body, "output.0.type").Str != "tool_call" {
				t.Errorf("%s", got.body)
			}
		})
	}
}

// configure writes mcp.json.
func (s *server) configure(content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(string(s.node.Home()), "mcp.json"), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// TestIntegrations_AServerThatDies: the error is told, the model gets it as the result, and the chat goes on.
func TestIntegrations_AServerThatDies(t *testing.T) {
	t.Parallel()
	s, tools := serve(t, callsThen("Sorry.", fakeengine.ToolCall{Name: "die", Arguments: "{}"}), withMCP), serveTools(t)
	order, fault, result := s.nativeStream("Use die.", tools.ephemeral("")).rest()
	wantOrder(t, order, "chat.start"+nativeLoaded+nativePrompt+" tool_call.start tool_call.arguments error tool_call.success"+nativePrompt+nativeMessage+" chat.end")
	if fault.Get("type").Str != "mcp_connection_error" || said(result) != "Sorry." || !strings.Contains(result.Get("output.0.output").Str, `"type":"text"`) {
		t.Errorf("%s %s", fault.Raw, result.Raw)
	}
}

func TestIntegrations_AClientThatDisconnectsCancelsTheCall(t *testing.T) {
	t.Parallel()
	s, tools := serve(t, callsThen("Never.", fakeengine.ToolCall{Name: "wait", Arguments: "{}"}), withMCP), serveTools(t)
	st := s.nativeStream("Use wait.", tools.ephemeral(""))
	st.until("tool_call.arguments")
	<-tools.waiting
	_ = st.resp.Body.Close()
	<-tools.cancelled
}

// TestIntegrations_AnEngineLostInALaterRound: the round is made again, and counts once.
func TestIntegrations_AnEngineLostInALaterRound(t *testing.T) {
	t.Parallel()
	script := callsThen("It said hi.", echo)
	lost := script.Rules[0]
	lost.Contains, lost.Times, lost.Cues = "Echo: hi", 1, []fakeengine.Cue{{After: 0, Do: fakeengine.Crash}}
	script.Rules = append([]fakeengine.Rule{lost}, script.Rules...)
	// A new process counts its rules anew: only the first start crashes.
	healthy := callsThen("It said hi.", echo)
	script.Cases = []fakeengine.Case{{Start: 2, Script: *healthy}}
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) {
			t.Parallel()
			s, tools := serve(t, script, withMCP), serveTools(t)
			var result gjson.Result
			if stream {
				_, fault, end := s.nativeStream("Use echo.", tools.ephemeral("")).rest()
				if result = end; fault.Exists() {
					t.Fatal(fault.Raw)
				}
			} else {
				result = gjson.Parse(s.native("Use echo.", tools.ephemeral("")).body)
			}
			if said(result) != "It said hi." || len(result.Get("output").Array()) != 2 || tools.calls.Load() != 1 {
				t.Errorf("%d calls, %s", tools.calls.Load(), result.Raw)
			}
		})
	}
}

// TestIntegrations_TokensAreOfAllRounds: max_output_tokens bounds them together, and usage sums them up.
func TestIntegrations_TokensAreOfAllRounds(t *testing.T) {
	t.Parallel()
	s, tools := serve(t, callsThen(strings.Repeat("word ", 200), echo), withMCP), serveTools(t)
	got := s.native("Use echo.", tools.ephemeral("")+`,"max_output_tokens":60`)
	if out := gjson.Get(got.body, "stats.total_output_tokens").Int(); got.status != http.StatusOK || out > 60 || out < 30 {
		t.Errorf("%d tokens: %s", out, got.body)
	}
	secret, token := s.token(access.Token{Limits: access.Limits{TokensPerDay: 10_000_000}})
	got = guarded(s).with(secret, "POST", "/api/v1/chat", `{"model":"tinychat","input":"Use echo."`+tools.ephemeral("")+`}`)
	var stats struct {
		Stats struct {
			Output int64 `json:"total_output_tokens"`
		} `json:"stats"`
	}
	if err := json.Unmarshal([]byte(got.body), &stats); err != nil || got.status != http.StatusOK {
		t.Fatal(got.status, got.body)
	}
	if used := s.usedBy(token.ID, "lmcaddy/tinychat", 1); used.TokensOut != stats.Stats.Output {
		t.Errorf("%d tokens were counted, want %d", used.TokensOut, stats.Stats.Output)
	}
}
