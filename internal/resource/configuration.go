package resource

import "encoding/json"

// Configuration is what a server's configuration says, and what is in force where it says nothing. It has no secrets. GET
// /api/v1/settings has it for administrators.
type Configuration struct {
	File       string    `json:"file,omitempty"` // that the server was started with; empty: none
	Home       string    `json:"home"`
	ModelsDirs []string  `json:"models_dirs"` // besides the home's own
	Settings   []Setting `json:"settings"`    // of the app, sorted by name
	Engines    []Block   `json:"engines"`
	Models     []Block   `json:"models"` // that have settings of their own
	Remotes    []Block   `json:"remotes,omitempty"`
	Sites      []Site    `json:"sites"`
}

// Setting is an option as the Caddyfile has it.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // one of the constants
}

// Where the value of a setting comes from.
const (
	FromFile        = "file"        // the configuration
	FromEnvironment = "environment" // a variable of the environment
	FromDefault     = "default"     // nothing was set
)

// Block is the settings of an engine or a model.
type Block struct {
	Name     string    `json:"name"`
	Settings []Setting `json:"settings"`
}

// Site is a listener with the endpoints of the API.
type Site struct {
	Server         string   `json:"server"`    // its name in the configuration
	Addresses      []string `json:"addresses"` // where it listens, as URLs
	Hosts          []string `json:"hosts"`     // the names that it serves; none: all
	TLS            bool     `json:"tls"`
	Authentication bool     `json:"authentication"` // every request for the API has passed lm_auth
	Reachable      bool     `json:"reachable"`      // other machines can connect
	Dialects       []string `json:"dialects"`       // none: all
	CORS           []string `json:"cors"`
	MaxBodyBytes   int64    `json:"max_body_bytes"`
	Page           bool     `json:"page"` // browsers get a page at /
}

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
