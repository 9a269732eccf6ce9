package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/lmcaddy/lmcaddy/mcploop"
)

// The bounds on a list of tools.
const (
	maxTools     = 1024
	maxPages     = 64
	maxListSize  = 4 * maxMessage
	maxName      = 256
	listTimeouts = 2 // how many times as long as a call the pages of a list may take together
)

// page is one page of a list of tools, as the server sent it.
type page struct {
	Tools      []json.RawMessage `json:"tools"`
	NextCursor string            `json:"nextCursor"`
}

func readPage(raw json.RawMessage) (page, error) {
	var p page
	if err := json.Unmarshal(raw, &p); err != nil || p.Tools == nil {
		return page{}, &protocolError{"its list of tools is none"}
	}
	return p, nil
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

type toolList struct {
	tools   []mcploop.Tool
	names   map[string]bool
	cursors map[string]bool
	left    []string // why tools were left out
	pages   int
	count   int
	size    int
}

// add adds a page. hidden are tools that the library says mustn't be used.
func (l *toolList) add(raw json.RawMessage, hidden func(name string) bool) (next string, err error) {
	p, err := readPage(raw)
	if err != nil {
		return "", err
	}
	l.pages++
	l.count += len(p.Tools)
	l.size += len(raw)
	switch {
	case l.count > maxTools:
		return "", &protocolError{fmt.Sprintf("it has more than %d tools", maxTools)}
	case l.size > maxListSize:
		return "", &protocolError{"its list of tools is too long"}
	case p.NextCursor != "" && l.pages == maxPages:
		return "", &protocolError{fmt.Sprintf("its list of tools has more than %d pages", maxPages)}
	case p.NextCursor != "" && l.cursors[p.NextCursor]:
		return "", &protocolError{"its list of tools never ends"}
	}
	l.cursors[p.NextCursor] = true
	for _, raw := range p.Tools {
		tool, problem := readTool(raw)
		switch {
		case problem == "" && l.names[tool.Name]:
			problem = "its name occurs twice"
		case problem == "" && hidden(tool.Name):
			problem = "its x-mcp-header is not valid"
		}
		if problem != "" {
			l.left = append(l.left, fmt.Sprintf("%s: %s", clip(tool.Name), problem))
			continue
		}
		l.names[tool.Name] = true
		l.tools = append(l.tools, tool)
	}
	return p.NextCursor, nil
}

func readTool(raw json.RawMessage) (tool mcploop.Tool, problem string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return mcploop.Tool{}, "it is no object"
	}
	if json.Unmarshal(members["name"], &tool.Name) != nil || tool.Name == "" {
		return mcploop.Tool{}, "it has no name"
	}
	if len(tool.Name) > maxName {
		return tool, fmt.Sprintf("its name is longer than %d bytes", maxName)
	}
	// A description that is no text is none.
	if json.Unmarshal(members["description"], &tool.Description) != nil {
		tool.Description = ""
	}
	if json.Unmarshal(members["title"], &tool.Title) != nil || len(tool.Title) > maxName {
		tool.Title = ""
	}
	schema := members["inputSchema"]
	if schema == nil {
		return tool, ""
	}
	if !isObject(schema) {
		return tool, "its inputSchema is no object"
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, bytes.ToValidUTF8(schema, []byte("\ufffd"))); err != nil {
		return tool, "its inputSchema is no JSON"
	}
	tool.Schema = compact.Bytes()
	return tool, ""
}

// Tools returns the tools of the server, which it keeps until the server says that they changed.
func (l *link) Tools(ctx context.Context) ([]mcploop.Tool, error) {
	select {
	case l.listing <- struct{}{}:
		defer func() { <-l.listing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	tools, generation := l.kept()
	if tools != nil {
		return slices.Clone(tools), nil
	}
	l.listen()
	after := listTimeouts * l.timeout()
	ctx, cancel := context.WithTimeoutCause(ctx, after, &timeoutError{after})
	defer cancel()
	list := &toolList{names: map[string]bool{}, cursors: map[string]bool{}}
	for cursor := ""; ; {
		n := new(note)
		request := mcp.ListToolsRequest{}
		request.Params.Cursor = mcp.Cursor(cursor)
		var usable map[string]bool
		err := l.do(ctx, n, func(ctx context.Context) error {
			result, err := l.client.ListToolsByPage(ctx, request)
			if err == nil {
				usable = namesOf(result.Tools)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		cursor, err = list.add(n.result, func(name string) bool { return n.tools[name] && !usable[name] })
		if err != nil {
			return nil, err
		}
		if cursor == "" {
			break
		}
	}
	if len(list.left) > 0 {
		l.log.Warn("tools were left out", "tools", clip(strings.Join(list.left, "; ")))
	}
	tools = list.tools
	if tools == nil {
		tools = []mcploop.Tool{}
	}
	l.keep(tools, generation)
	return slices.Clone(tools), nil
}

func namesOf(tools []mcp.Tool) map[string]bool {
	names := make(map[string]bool, len(tools))
	for _, tool := range tools {
		names[tool.Name] = true
	}
	return names
}

const maxDepth = 64

// Call calls a tool. A refusal of the server, such as for an unknown name, is a result: the model can do better the next time.
func (l *link) Call(ctx context.Context, tool string, args json.RawMessage) (mcploop.Result, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name = tool
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	request.Params.Arguments = args
	n := new(note)
	err := l.do(ctx, n, func(ctx context.Context) error {
		_, err := l.client.CallTool(ctx, request)
		return err
	})
	if refused, ok := err.(*refusedError); ok { //nolint:errorlint // do returns it as it is
		return mcploop.TextResult(fmt.Sprintf("MCP error %d: %s", refused.Code, refused.Message), true), nil
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
		return mcploop.TextResult(compact(result.Structured), result.IsError), nil
	case parts == nil:
		return mcploop.Result{}, &protocolError{"a result has no content"}
	}
	return mcploop.Result{Content: json.RawMessage(compact(result.Content)), IsError: result.IsError}, nil
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw) // it was parsed: this doesn't happen
	}
	return b.String()
}

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
