// Package fakemcp is an MCP server for tests: the test binary, started again, which speaks MCP on its standard input and
// output. Its tools are echo, which returns its argument "text", and pid, which returns the id of its process.
package fakemcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// variable is the environment variable that makes the test binary a server. Its value is what the server does.
const variable = "LMCADDY_FAKE_MCP"

// What a server does.
const (
	Serves = "serves"
	Fails  = "fails" // it says on standard error what is missing, and ends
)

// Missing is what a server that fails says last.
const Missing = "fakemcp: the key is missing"

// Entry is an entry of mcp.json.
type Entry struct {
	Command string            `json:"command,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// Program returns an entry whose program does what is said. The TestMain of the test has to call [MainIfChild].
func Program(t testing.TB, does string) Entry {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Entry{Command: path, Env: map[string]string{variable: does}}
}

// Write writes an mcp.json.
func Write(t testing.TB, path string, entries map[string]Entry) {
	t.Helper()
	content, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// MainIfChild runs the server and ends the process, if the process was started as one.
func MainIfChild() {
	switch os.Getenv(variable) {
	case "":
		return
	case Fails:
		fmt.Fprintln(os.Stderr, "fakemcp: reading the settings")
		fmt.Fprintln(os.Stderr, Missing)
		os.Exit(3)
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		answer(in.Bytes())
	}
	os.Exit(0)
}

const tools = `{"tools":[` +
	`{"name":"echo","description":"Returns a text.\nIt is the same.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},` +
	`{"name":"pid","inputSchema":{"type":"object"}}]}`

// answer answers a message, unless it is a notification.
func answer(line []byte) {
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Version   string                `json:"protocolVersion"`
			Name      string                `json:"name"`
			Arguments struct{ Text string } `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(line, &message) != nil || message.ID == nil {
		return
	}
	result := "{}"
	switch message.Method {
	case "initialize":
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"fakemcp","version":"1"}}`, message.Params.Version)
	case "tools/list":
		result = tools
	case "tools/call":
		text := message.Params.Arguments.Text
		if message.Params.Name == "pid" {
			text = fmt.Sprint(os.Getpid())
		}
		quoted, _ := json.Marshal(text) // a string can be written
		result = fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, quoted)
	}
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", message.ID, result)
}
