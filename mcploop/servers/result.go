package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/lmcaddy/lmcaddy/mcploop"
)

// maxDepth is how deep a result may be nested.
const maxDepth = 64

// Call calls a tool. A refusal of the server, such as for a name that it doesn't know, is a result that is an error: the model
// can do better the next time.
func (l *link) Call(ctx context.Context, tool string, args json.RawMessage) (mcploop.Result, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name = tool
	if len(args) > 0 {
		request.Params.Arguments = args
	}
	n := new(note)
	err := l.do(ctx, n, func(ctx context.Context) error {
		_, err := l.client.CallTool(ctx, request)
		return err
	})
	if refused, ok := err.(*refusedError); ok { //nolint:errorlint // do returns it as it is
		return textResult(fmt.Sprintf("MCP error %d: %s", refused.Code, refused.Message), true)
	}
	if err != nil {
		return mcploop.Result{}, err
	}
	return readResult(n.result)
}

func readResult(raw json.RawMessage) (mcploop.Result, error) {
	raw = bytes.ToValidUTF8(raw, []byte("\ufffd"))
	if depth(raw) > maxDepth {
		return mcploop.Result{}, &protocolError{fmt.Sprintf("a result is nested more than %d levels deep", maxDepth)}
	}
	var result struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if json.Unmarshal(raw, &result) != nil {
		return mcploop.Result{}, &protocolError{"a result has an isError that is neither true nor false"}
	}
	var parts []json.RawMessage
	if len(result.Content) > 0 {
		if err := json.Unmarshal(result.Content, &parts); err != nil {
			return mcploop.Result{}, &protocolError{"the content of a result is no array"}
		}
	}
	for _, part := range parts {
		if !isObject(part) {
			return mcploop.Result{}, &protocolError{"the content of a result has a part that is no object"}
		}
	}
	hasStructured := len(result.Structured) > 0 && string(result.Structured) != "null"
	switch {
	case len(parts) == 0 && hasStructured:
		return textResult(compact(result.Structured), result.IsError)
	case parts == nil:
		return mcploop.Result{}, &protocolError{"a result has no content"}
	}
	return mcploop.Result{Content: json.RawMessage(compact(result.Content)), IsError: result.IsError}, nil
}

func textResult(text string, isError bool) (mcploop.Result, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	type part struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	err := encoder.Encode([]part{{"text", text}})
	return mcploop.Result{Content: bytes.TrimSpace(b.Bytes()), IsError: isError}, err
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw) // it was parsed: this doesn't happen
	}
	return b.String()
}

// depth returns how deep a JSON text is nested.
func depth(raw []byte) int {
	level, deepest := 0, 0
	inString := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}
