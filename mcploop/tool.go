package mcploop

import (
	"context"
	"encoding/json"
)

// Tool is a tool of an MCP server.
type Tool struct {
	Name        string
	Title       string // for people; may be empty
	Description string
	Schema      json.RawMessage // JSON schema of the arguments, an object; empty if there is none
}

// Result is what a tool returned.
type Result struct {
	Content json.RawMessage // the content array of the MCP result, as compact JSON
	IsError bool            // the tool reports an error of its own
}

// Server is an MCP server whose tools can be called. Its methods may be called from any goroutine.
type Server interface {
	// Tools returns the tools of the server.
	Tools(ctx context.Context) ([]Tool, error)

	// Call calls a tool. args is a JSON object. An error means that the server failed: a tool's own error is a Result.
	Call(ctx context.Context, tool string, args json.RawMessage) (Result, error)
}
