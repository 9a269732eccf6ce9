package resource

import "encoding/json"

// MCPServers is the response to GET /api/v1/mcp.
type MCPServers struct {
	Servers []MCPServer `json:"servers"` // of mcp.json, sorted by label
}

// MCPServer is a server of mcp.json.
type MCPServer struct {
	Label     string `json:"label"`
	Transport string `json:"transport"`         // stdio, http or sse
	Status    string `json:"status"`            // connected, idle or failed
	Error     string `json:"error,omitempty"`   // why it has failed
	Sessions  int    `json:"sessions"`          // in progress
	Tools     *int   `json:"tools,omitempty"`   // how many, if that is known
	URL       string `json:"url,omitempty"`     // for administrators, without secrets
	Command   string `json:"command,omitempty"` // for administrators, without arguments
}

// MCPServerTools is the response to GET /api/v1/mcp/{label}.
type MCPServerTools struct {
	MCPServer

	Tools []MCPTool `json:"tools"` // none if it has failed
}

// MCPTool is a tool of a server.
type MCPTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"` // an object
}
