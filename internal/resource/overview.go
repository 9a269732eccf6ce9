package resource

import (
	"encoding/json"
	"time"
)

// Overview is the response to GET /api/v1/ps, beyond the specification: what is loaded or about to be, all from the same moment.
// Times may have nanoseconds. What only an administrator sees is absent for others.
type Overview struct {
	Time      time.Time          `json:"time"`
	Limits    OverviewLimits     `json:"limits"`
	Memory    int64              `json:"memory_bytes"` // of the machine's memory, by all instances, counted against the budget
	Instances []OverviewInstance `json:"instances"`    // in order of loading
	Coming    []OverviewComing   `json:"coming"`       // instances that will be restarted
	Failing   []OverviewFault    `json:"failing"`      // models that have failed and haven't worked since, sorted by key
	Waiting   map[string]int     `json:"waiting"`      // requests, by key of the model
	Devices   []OverviewDevice   `json:"devices"`      // the CPU first
	// Faults: GPUs that engines can't use as they should, with what to do; only an administrator sees them
	Faults  []string         `json:"faults,omitempty"`
	Remotes []OverviewRemote `json:"remotes,omitempty"`
	Nodes   []OverviewNode   `json:"nodes,omitempty"` // of the cluster, by name
}

// OverviewNode is a node of the cluster, as the one sees it that answers.
type OverviewNode struct {
	Name    string    `json:"name"`
	Self    bool      `json:"self"`            // it answers
	Status  string    `json:"status"`          // connected, unreachable, leaving or late
	Error   string    `json:"error,omitempty"` // why it is unreachable
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started_at,omitzero"`
	Loaded  int       `json:"loaded"` // instances
	InUse   int       `json:"in_use"`
	Waiting int       `json:"waiting"`
	Memory  int64     `json:"memory_bytes"`
	Budget  int64     `json:"memory_budget_bytes"` // 0: unlimited
	URL     string    `json:"url,omitempty"`       // only an administrator sees it
}

// The further statuses of a node. One that is late hasn't told of itself for some time, but can be reached: it can't reach the store.
const (
	NodeLeaving = "leaving"
	NodeLate    = "late"
)

// OverviewRemote is a server that this one reaches.
type OverviewRemote struct {
	Name    string    `json:"name"`
	Status  string    `json:"status"`          // connecting, connected or unreachable
	Error   string    `json:"error,omitempty"` // why it is unreachable
	Since   time.Time `json:"since,omitzero"`  // of the status
	Kind    string    `json:"kind,omitempty"`
	Version string    `json:"version,omitempty"`
	Models  int       `json:"models"` // that it has, or had when it was reached
	Prefer  int       `json:"prefer"`
	URL     string    `json:"url,omitempty"` // only an administrator sees it
}

// The statuses of a remote.
const (
	RemoteConnecting  = "connecting"
	RemoteConnected   = "connected"
	RemoteUnreachable = "unreachable"
)

// OverviewLimits are the limits in effect; 0: unlimited.
type OverviewLimits struct {
	Instances int   `json:"max_loaded"`
	Memory    int64 `json:"memory_budget_bytes"`
	Queue     int   `json:"queue"` // waiting requests for each model
}

// OverviewDevice is a device that runs models.
type OverviewDevice struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`              // cpu, or gpu, which other accelerators are, too
	Unified bool   `json:"unified,omitempty"` // it shares the machine's memory, that of the CPU
	Total   int64  `json:"total_bytes"`
	Free    int64  `json:"free_bytes,omitempty"` // absent: unknown
	Claimed int64  `json:"claimed_bytes"`        // by the instances whose devices are known
	// Budget: that all instances may take together; absent: unlimited, or it has no memory of its own
	Budget int64 `json:"budget_bytes,omitempty"`
	Held   int64 `json:"held_bytes,omitempty"` // by other programs, as far as that is known
}

// DeviceMemory is what an instance takes of a device.
type DeviceMemory struct {
	Name   string `json:"name"`
	Memory int64  `json:"memory_bytes"`
}

// OverviewInstance is an instance. Fields that are unknown or don't apply are absent.
type OverviewInstance struct {
	ID       string   `json:"id"`
	Model    string   `json:"model"`
	Status   string   `json:"status"`            // starting, loading, ready, draining or stopping
	Reason   string   `json:"reason,omitempty"`  // why it is draining or stopping
	Renewing bool     `json:"renewing"`          // it will be restarted with other settings once it is idle
	Smaller  bool     `json:"smaller,omitempty"` // it has fewer slots or a smaller prompt cache, to make room for other models
	Pinned   bool     `json:"pinned"`
	Progress *float64 `json:"progress,omitempty"` // of loading, 0 to 1

	InUse         int    `json:"in_use"`
	Slots         int    `json:"slots"`
	Remote        string `json:"remote,omitempty"` // that it is on; it takes no memory here then
	ContextLength int    `json:"context_length"`
	DraftModel    string `json:"draft_model,omitempty"`
	// Owner: who loaded it: a token's id, or a user of another authentication; only that owner and an administrator see it
	Owner    string `json:"owner,omitempty"`
	Memory   int64  `json:"memory_bytes"` // counted against the budget
	Resident int64  `json:"resident_memory_bytes,omitempty"`

	Devices []DeviceMemory `json:"devices,omitempty"` // how memory_bytes are spread, as far as that is known
	// Placement: where the model is, in words; absent: nothing but the processor comes into question
	Placement string `json:"placement,omitempty"`
	// Split: a part of it, or all, is on the processor although there is a GPU: it is many times slower
	Split bool `json:"split,omitempty"`

	LoadedAt    time.Time `json:"loaded_at,omitzero"`
	LoadSeconds float64   `json:"load_time_seconds,omitempty"`
	LastUsed    time.Time `json:"last_used,omitzero"` // when it was loaded, or the last request began or ended
	TTLSeconds  float64   `json:"ttl_seconds"`        // how long it may be idle; 0: unlimited
	Expires     time.Time `json:"expires_at,omitzero"`

	// The process; only an administrator sees it and the engine's version
	PID           int    `json:"pid,omitempty"`
	Address       string `json:"address,omitempty"` // where the engine listens: the path of its socket, or 127.0.0.1 and a port
	Sandbox       string `json:"sandbox,omitempty"` // what confines the engine; "off"; or "not available" and why
	Engine        string `json:"engine,omitempty"`
	EngineVersion string `json:"engine_version,omitempty"`
}

// OverviewComing is an instance that will be restarted.
type OverviewComing struct {
	ID    string    `json:"id"`
	Model string    `json:"model"`
	At    time.Time `json:"at"`               // not before
	Why   string    `json:"reason,omitempty"` // empty: other settings
}

// OverviewFault is a model that has failed.
type OverviewFault struct {
	Model string    `json:"model"`
	Count int       `json:"failures"` // in a row
	Until time.Time `json:"retry_at"` // not before; in the past: the next request tries again
	Why   string    `json:"reason"`   // of the last failure
}

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
