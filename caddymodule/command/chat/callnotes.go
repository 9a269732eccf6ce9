package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
)

// integrations returns the MCP servers of the flag --mcp as a request names them.
func integrations(names []string) ([]string, error) {
	var all []string
	for _, name := range names {
		id := "mcp/" + strings.TrimPrefix(strings.TrimSpace(name), "mcp/")
		if id == "mcp/" {
			return nil, errors.New(`--mcp: a name is empty: give the names of servers in mcp.json, which "lmcaddy mcp ls" lists`)
		}
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all, nil
}

// explainIntegrations adds to a refusal what the operator of the server can do.
func explainIntegrations(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusForbidden || refused.Hint != "" {
		return err
	}
	switch refused.Code {
	case "gate_closed":
		refused.Hint = `put it there and reload it, or start the server with "lmcaddy serve --allow plugin_mcp"`
	case "missing_scope":
		refused.Hint = `"lmcaddy token edit" adds a scope to a token, "lmcaddy token create --scopes inference,mcp.plugin" makes another`
	}
	return err
}

// callNote describes a call of a tool, its result, why it wasn't made, or the failure of its server, in one line.
func callNote(e client.ChatEvent) string {
	switch e.Type {
	case "tool_call.success":
		return kit.OneLine("← " + e.Tool + ": " + textOf(e.Output))
	case "tool_call.failure":
		return kit.OneLine("✗ " + e.Invalid.Tool + compact(e.Invalid.Arguments) + ": " + e.Reason)
	case "error":
		return kit.OneLine("✗ " + e.Error.Message)
	default:
		return kit.OneLine("→ " + e.Tool + compact(e.Arguments))
	}
}

// compact returns the arguments of a call in brackets, without spaces between them; nothing if there are none.
func compact(args json.RawMessage) string {
	if len(args) == 0 {
		return ""
	}
	var text bytes.Buffer
	if json.Compact(&text, args) != nil || text.String() == "{}" {
		return "()"
	}
	return "(" + text.String() + ")"
}

// textOf returns the texts of a tool's result, and of what isn't text its kind.
func textOf(output string) string {
	var content []struct{ Type, Text string }
	if json.Unmarshal([]byte(output), &content) != nil {
		return output
	}
	if len(content) == 0 {
		return "(nothing)"
	}
	parts := make([]string, len(content))
	for i, c := range content {
		if parts[i] = c.Text; c.Type != "text" {
			parts[i] = fmt.Sprintf("[%s]", c.Type)
		}
	}
	return strings.Join(parts, " ")
}
