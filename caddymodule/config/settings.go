// Package config has the configuration of the model server, as a Caddyfile and Caddy's JSON have it, and makes a node's settings of it.
//
// A field of a struct here is an option, as package option describes it. Nothing else has to be changed for a new one but what uses it,
// which is mostly [Settings.NodeSettings]; `make reference` writes its documentation.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node"
)

// Settings are the options of the app.
type Settings struct {
	// What its Caddyfile has that is surely meant otherwise, as sentences without a full stop.
	Notes []string `json:"notes,omitempty" word:"-"`

	// The folder that holds all state.
	Home string `json:"home,omitempty" args:"<folder>" otherwise:"$LMCADDY_HOME, else ~/.lmcaddy" example:"/srv/lmcaddy"`

	// Additional models folders. They are only read. One that doesn't exist causes a warning.
	ModelsDirs []string `json:"models_dirs,omitempty" word:"models_dir" args:"<folder>" otherwise:"the home's alone" example:"/srv/models"`

	// Additional names and addresses of this machine. Sites without authentication accept requests for them, and TLS on demand issues
	// certificates for them.
	Hosts []Host `json:"hosts,omitempty" args:"<name or address...>" otherwise:"none" example:"server.lan"`

	// Loads a model when a request first names it. With off, only loaded models answer.
	JIT *bool `json:"jit,omitempty" default:"on"`

	// How long a model that was loaded on first use may be idle before it is unloaded; 0: it stays loaded.
	IdleTTL *caddy.Duration `json:"idle_ttl,omitempty" args:"<duration>" default:"60m" example:"2h"`

	// How many instances may be loaded at a time.
	MaxLoaded int `json:"max_loaded,omitempty" args:"<n>" min:"0" otherwise:"0 (limited only by memory)" example:"3"`

	// How many models are downloaded at a time; others wait.
	MaxDownloads int `json:"max_downloads,omitempty" args:"<n>" min:"1" default:"3" example:"1"`

	// How much of the machine's memory all instances may take together: a share of it, such as 85%, or a size, such as 20GiB. The machine's
	// memory is at most what the process's control group allows.
	MemoryBudget Budget `json:"memory_budget,omitempty" args:"<share>|<size>" default:"85%" example:"20GiB"`

	// How much of each GPU's own memory all instances may take together: a share of it, such as 95%, or a size, such as 20GiB. What other
	// programs hold is theirs. A line with a device is for that one.
	GPUMemory Budget `json:"gpu_memory,omitempty" args:"[<device>] <share>|<size>" default:"95%" example:"20GiB"`

	// The same for single GPUs, by the engine's name for them, such as CUDA0.
	GPUMemories map[string]Budget `json:"gpu_memories,omitempty" word:"gpu_memory" args:"<device> <share>|<size>" example:"CUDA0 20GiB"`

	// How many requests may wait for each model; more are refused. 0: unlimited. Owners (tokens, users) are served in turn, and a full
	// queue refuses the newest request of the owner with the most.
	Queue *int `json:"queue,omitempty" args:"<n>" min:"0" default:"512" example:"64"`

	// How much memory the bodies of all requests may take together: those that are being read, that wait and that are being answered. One
	// token may take a quarter of it. More are refused with Retry-After: 503 for the server's limit, 429 for the token's. A request that is
	// alone is limited by max_body only.
	BodyMemory option.Size `json:"body_memory,omitempty" args:"<size>" max:"1TiB" otherwise:"a sixteenth of memory, at least 256 MiB" example:"1GiB"`

	// How many requests to models are kept whole, with their answers, for administrators to inspect. They are in memory alone, and bounded
	// in size.
	Inspect int `json:"inspect,omitempty" args:"<n>" min:"0" default:"0" example:"100"`

	// The longest time that an engine may make no progress, while it loads or answers, before it counts as hung. Once an engine's speed is
	// known, one that hangs during requests is ended sooner. Raise it where one batch of a prompt takes longer.
	StallTimeout caddy.Duration `json:"stall_timeout,omitempty" args:"<duration>" default:"5m" example:"90s"`

	// How long a client may read nothing of its answer before its request is cancelled.
	SlowClientTimeout caddy.Duration `json:"slow_client_timeout,omitempty" args:"<duration>" default:"1m" example:"30s"`

	// Whose prompts an engine's cache serves. With "shared", a request may be answered faster because another owner sent a prompt with the
	// same beginning, which its client can notice; with "private", an owner's prompts serve that owner alone.
	PromptCache string `json:"prompt_cache,omitempty" args:"shared|private" default:"shared"`

	// Where conversations are stored, and for how long.
	Store Store `json:"store,omitzero" otherwise:"sqlite" example:"postgres postgres://lmcaddy@db.example/lmcaddy"`

	// Which states of conversations are kept in files, so that they needn't be processed again.
	Warm Warm `json:"warm,omitzero" default:"on" example:"off"`

	// Which of the features that are off by default are allowed. "plugin_mcp": native chats may use the servers of mcp.json.
	// "ephemeral_mcp": native chats may use servers that the request names. "remote_mcp": /v1/responses may use servers that the request
	// names, and with "plugin_mcp" those of mcp.json. "raw_grammar": completions may have a grammar, with which a client can keep an engine
	// busy.
	Allow []string `json:"allow,omitempty" args:"ephemeral_mcp|plugin_mcp|remote_mcp|raw_grammar..." otherwise:"nothing"`

	// The hosts without a public address that a request's MCP server may have: names, addresses or networks, such as 10.0.0.0/8, each with
	// a port or without.
	MCPPrivateHosts []string `json:"mcp_private_hosts,omitempty" args:"<host...>" otherwise:"none" example:"127.0.0.1:3001"`

	// How long a call of an MCP tool may take.
	MCPTimeout caddy.Duration `json:"mcp_timeout,omitempty" args:"<duration>" default:"1m" example:"90s"`

	// How long an MCP server may be unused before its connection is closed and, if lmcaddy started it, its process ended.
	MCPIdle caddy.Duration `json:"mcp_idle,omitempty" args:"<duration>" default:"10m" example:"1h"`

	// How many answers of the model a chat with MCP tools may take. For the last one, the model gets no tools.
	MCPMaxRounds int `json:"mcp_max_rounds,omitempty" args:"<n>" min:"2" default:"25" example:"10"`

	// What GET /v1/models lists: the loaded instances, or also all other models.
	ListModels string `json:"list_models,omitempty" args:"loaded|all" default:"loaded"`

	// What happens to a request for an unknown model, or for none: with "strict" it is refused; with "single" the one loaded model of its
	// kind answers, or the only one that exists.
	UnknownModel string `json:"unknown_model,omitempty" args:"strict|single" default:"strict"`

	// What happens to images for a model that can't see them, and to documents, audio and videos: with "refuse" their request is refused;
	// with "omit" they are left out, and the model gets a note in their place.
	UnsupportedContent string `json:"unsupported_content,omitempty" args:"refuse|omit" default:"refuse"`

	// The field in which OpenAI-style answers carry the model's thinking.
	ReasoningField string `json:"reasoning_field,omitempty" args:"reasoning|reasoning_content" default:"reasoning"`

	// How an engine is run: "llama_server" is llama.cpp's llama-server, which runs GGUF models, and "mlx_lm" Apple's mlx_lm.server, which
	// runs MLX models.
	Engines Engines `json:"engines,omitempty" word:"engine" args:"<name>"`

	// Settings of a model, by its key or another name that requests may use.
	Models Models `json:"models,omitempty" word:"model" args:"<key>"`

	// Where models are downloaded from; the first serves identifiers without a URL. Default: that of the environment variable HF_ENDPOINT,
	// else huggingface.co, with the token in HF_TOKEN.
	Hubs []Hub `json:"hubs,omitempty" word:"hub" example:"https://huggingface.co"`

	// A server of models that is reached over the network, and not run here, such as vLLM, SGLang, another lmcaddy, LM Studio, Ollama or
	// llama-server. Its models are served like those of this machine.
	Remotes []Remote `json:"remotes,omitempty" word:"remote"`

	// The cluster that this server is a node of: servers that share a PostgreSQL store, of which each answers requests for the models of
	// all of them.
	Cluster *Cluster `json:"cluster,omitempty" otherwise:"none"`

	// Request defaults, by a name that requests choose them by in the field "preset": the values of fields. The field "system_prompt" is a
	// system message for requests that have none. A value that is JSON is taken as such, and any other is a string. Several values are an
	// array. A request's own fields take precedence. A grammar needs the gate "raw_grammar" here, too.
	Presets Presets `json:"presets,omitempty" word:"preset" args:"<name>" otherwise:"none" example:"short {\n\t\t\tmax_tokens 200\n\t\t}"`
}

// UnmarshalCaddyfile reads the global option lm.
func (s *Settings) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // lm
	return option.Parse(d, "lm", s)
}

// Check checks what concerns several options.
func (s *Settings) Check() error {
	owners := map[string]string{}
	for key, m := range s.Models {
		for _, alias := range m.aliases() {
			if other, ok := owners[alias]; ok && other != key {
				return fmt.Errorf("alias %s: it is already used by the model %s", alias, min(key, other))
			}
			owners[alias] = key
		}
	}
	for i, h := range s.Hubs {
		if slices.ContainsFunc(s.Hubs[:i], func(other Hub) bool { return other.URL == h.URL }) {
			return fmt.Errorf("hub %s: it is configured already", h.URL)
		}
	}
	for i := range s.Remotes {
		r := &s.Remotes[i]
		if slices.ContainsFunc(s.Remotes[:i], func(other Remote) bool { return strings.EqualFold(other.name(), r.name()) }) {
			return fmt.Errorf("remote %s: another one is called %s: give it a name of its own", r.URL, r.name())
		}
	}
	if s.Cluster != nil && s.Cluster.URL == "" {
		return errors.New("cluster: the address is missing: " +
			"give the one where other nodes reach this server, such as https://10.0.0.2:8443")
	}
	return cmp.Or(s.Engines.check(), node.MCPSettings{Settings: servers.Settings{PrivateHosts: s.MCPPrivateHosts}}.Validate())
}

// Values returns the words of which an option's value must be one.
func Values(word string) []string {
	f := option.Of(Settings{}, word)
	return f.Values()
}
