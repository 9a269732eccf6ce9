package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// MCPServer is an MCP server of a test: streamable HTTP on the loopback interface, with as much of the protocol as clients
// need for tools. It records what it is asked.
type MCPServer struct {
	URL string

	// Instead answers a request instead of the server, unless it returns false. The message is the JSON-RPC message of a POST.
	Instead func(w http.ResponseWriter, r *http.Request, message gjson.Result) bool

	mu       sync.Mutex
	tools    []MCPTool
	requests []MCPRequest
	running  map[string]context.CancelFunc // the calls, by session and id
	listen   []chan string                 // gets messages for each open GET
	sessions map[string]bool               // those it knows, by id
	made     int                           // how many there have ever been
}

// MCPTool is a tool of an [MCPServer].
type MCPTool struct {
	Name   string
	Schema string // JSON; empty: an object without properties

	// Run returns the result's text. The context ends when the client cancels the call, or disconnects.
	Run func(ctx context.Context, args gjson.Result) string
}

// MCPRequest is a request that a server got.
type MCPRequest struct {
	Header  http.Header
	Verb    string // GET, POST or DELETE
	Message gjson.Result
}

// Says is a tool's Run that returns the same text every time.
func Says(text string) func(context.Context, gjson.Result) string {
	return func(context.Context, gjson.Result) string { return text }
}

// TextContent is the content of a tool's result that is one text: a JSON array, as servers write it.
func TextContent(text string) string {
	block := struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", text}
	content, err := json.Marshal([]any{block})
	if err != nil {
		panic(err) // strings have no error
	}
	return string(content)
}

// StartMCP runs a server with tools until the end of the test.
func StartMCP(t testing.TB, tools ...MCPTool) *MCPServer {
	t.Helper()
	m := &MCPServer{tools: tools, running: map[string]context.CancelFunc{}, sessions: map[string]bool{}}
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() { // whatever a fault is doing ends with the test
			select {
			case <-over:
				cancel()
			case <-ctx.Done():
			}
		}()
		m.serve(w, r.WithContext(ctx))
	}))
	t.Cleanup(func() {
		close(over)
		server.CloseClientConnections()
		server.Close()
	})
	m.URL = server.URL + "/mcp"
	return m
}

// Ephemeral is the integration of a chat that names this server.
func (m *MCPServer) Ephemeral(label string) Fields { return Ephemeral(label, m.URL) }

// Ephemeral is the integration of a chat that names a server by its URL.
func Ephemeral(label, url string) Fields {
	return Fields{"type": "ephemeral_mcp", "server_label": label, "server_url": url}
}

// SetTools changes the tools, and tells every client that listens.
func (m *MCPServer) SetTools(tools ...MCPTool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools = tools
	for _, c := range m.listen {
		c <- `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	}
}

// ForgetSessions makes every session of now unknown, as after a restart.
func (m *MCPServer) ForgetSessions() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.sessions)
}

// knows reports whether a request's session is known, or it has none.
func (m *MCPServer) knows(r *http.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := r.Header.Get(sessionHeader)
	return id == "" || m.sessions[id]
}

// Listeners is the number of clients that are told of changes.
func (m *MCPServer) Listeners() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.listen)
}

// Requests are all requests so far, oldest first.
func (m *MCPServer) Requests() []MCPRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Count is the number of messages so far of a method of the protocol.
func (m *MCPServer) Count(method string) int {
	n := 0
	for _, r := range m.Requests() {
		if r.Message.Get("method").Str == method {
			n++
		}
	}
	return n
}

// Calls are the names of the tools that were called, in order.
func (m *MCPServer) Calls() []string {
	names := []string{}
	for _, r := range m.Requests() {
		if r.Message.Get("method").Str == "tools/call" {
			names = append(names, r.Message.Get("params.name").Str)
		}
	}
	return names
}

func (m *MCPServer) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return // the client has disconnected
	}
	message := gjson.ParseBytes(body)
	m.mu.Lock()
	m.requests = append(m.requests, MCPRequest{r.Header.Clone(), r.Method, message})
	m.mu.Unlock()
	if m.Instead != nil && m.Instead(w, r, message) {
		return
	}
	switch {
	case !m.knows(r):
		http.Error(w, "Session not found", http.StatusNotFound)
	case r.Method == http.MethodGet:
		m.notify(w, r)
	case r.Method != http.MethodPost:
	case message.Get("method").Str == "notifications/cancelled":
		m.cancel(r.Header.Get(sessionHeader) + " " + message.Get("params.requestId").Raw)
		w.WriteHeader(http.StatusAccepted)
	case !message.Get("id").Exists():
		w.WriteHeader(http.StatusAccepted)
	default:
		m.answer(w, r, message)
	}
}

const sessionHeader = "Mcp-Session-Id"

// notify is a GET: a stream of the server's own messages, until the client disconnects.
func (m *MCPServer) notify(w http.ResponseWriter, r *http.Request) {
	messages := make(chan string, 16)
	m.mu.Lock()
	m.listen = append(m.listen, messages)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.listen = slices.DeleteFunc(m.listen, func(c chan string) bool { return c == messages })
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case text := <-messages:
			_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", text)
		case <-r.Context().Done():
			return
		}
	}
}

func (m *MCPServer) answer(w http.ResponseWriter, r *http.Request, message gjson.Result) {
	switch message.Get("method").Str {
	case "initialize":
		m.mu.Lock()
		m.made++
		id := fmt.Sprintf("session-%d", m.made)
		m.sessions[id] = true
		m.mu.Unlock()
		w.Header().Set(sessionHeader, id)
		m.Reply(w, message, Fields{
			"protocolVersion": cmp.Or(message.Get("params.protocolVersion").Str, "2025-06-18"),
			"capabilities":    Fields{"tools": Fields{"listChanged": true}},
			"serverInfo":      Fields{"name": "test", "version": "1"},
		})
	case "ping":
		m.Reply(w, message, Fields{})
	case "tools/list":
		m.Reply(w, message, Fields{"tools": m.list()})
	case "tools/call":
		m.call(w, r, message)
	default:
		m.Error(w, message, -32601, "Method not found")
	}
}

func (m *MCPServer) list() []Fields {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []Fields{}
	for _, tool := range m.tools {
		list = append(list, Fields{
			"name": tool.Name, "description": "A tool of a test",
			"inputSchema": json.RawMessage(cmp.Or(tool.Schema, `{"type":"object","properties":{}}`)),
		})
	}
	return list
}

func (m *MCPServer) call(w http.ResponseWriter, r *http.Request, message gjson.Result) {
	m.mu.Lock()
	i := slices.IndexFunc(m.tools, func(tool MCPTool) bool { return tool.Name == message.Get("params.name").Str })
	if i < 0 {
		m.mu.Unlock()
		m.Error(w, message, -32602, "Unknown tool")
		return
	}
	run := m.tools[i].Run
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	m.running[r.Header.Get(sessionHeader)+" "+message.Get("id").Raw] = cancel
	m.mu.Unlock()
	content := TextContent(run(ctx, message.Get("params.arguments")))
	m.Reply(w, message, Fields{"content": json.RawMessage(content)})
}

func (m *MCPServer) cancel(call string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cancel := m.running[call]; cancel != nil {
		cancel()
	}
}

// Reply answers a message with a result.
func (m *MCPServer) Reply(w http.ResponseWriter, message gjson.Result, result any) {
	m.respond(w, Fields{"jsonrpc": "2.0", "id": message.Get("id").Value(), "result": result})
}

// Error answers a message with an error of JSON-RPC.
func (m *MCPServer) Error(w http.ResponseWriter, message gjson.Result, code int, text string) {
	m.respond(w, Fields{"jsonrpc": "2.0", "id": message.Get("id").Value(), "error": Fields{"code": code, "message": text}})
}

func (m *MCPServer) respond(w http.ResponseWriter, content Fields) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(content) // the client may have disconnected
}
