// Package caddymodule has the Caddy modules: the app "lm", the handlers lm_api and lm_auth, TLS permissions, the admin route,
// metrics, and the parsing of the Caddyfile. It turns a configuration into a node's settings, and passes requests to package
// api. Importing it changes nothing in Caddy but which modules there are.
//
// The node outlives configurations. An app opens the node when it starts, or finds it open, and pushes its settings; it pops
// them when it stops. The last app to be cleaned up closes the node. Requests that began under an older configuration are
// completed under it, on the same node.
package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

func init() { caddy.RegisterModule(new(App)) }

// App is the model server: its models, and the engines that run them.
type App struct {
	// The folder that holds all state. Default: $LMCADDY_HOME, else ~/.lmcaddy.
	Home string `json:"home,omitempty"`

	// Additional models folders. They are only read.
	ModelsDirs []string `json:"models_dirs,omitempty"`

	// Whether a model is loaded when a request first names it. Default: true.
	JIT *bool `json:"jit,omitempty"`

	// How long a model that was loaded on first use may be idle before it is unloaded; 0: it stays loaded. Default: 60m.
	IdleTTL *caddy.Duration `json:"idle_ttl,omitempty"`

	// How many instances may be loaded at a time; 0: limited only by memory. Default: 0.
	MaxLoaded int `json:"max_loaded,omitempty"`

	// How many models are downloaded at a time; others wait. Default: 3.
	MaxDownloads int `json:"max_downloads,omitempty"`

	// How much of the machine's memory all instances may take together: a share of it, such as 85%, or a size, such as 20GiB. Default: 85%.
	MemoryBudget string `json:"memory_budget,omitempty"`

	// How much of each GPU's own memory all instances may take together: a share of it, such as 95%, or a size, such as 20GiB. What other
	// programs hold is theirs. Default: 95%.
	GPUMemory string `json:"gpu_memory,omitempty"`

	// The same for single GPUs, by the engine's name for them, such as CUDA0.
	GPUMemories map[string]string `json:"gpu_memories,omitempty"`

	// How many requests may wait for each model; more are refused. 0: unlimited. Default: 512.
	Queue *int `json:"queue,omitempty"`

	// How much memory the bodies of all requests may take together, in bytes: those that are being read, that wait and that
	// are being answered. One token may take a quarter of it. Default: a sixteenth of the machine's memory, at least 256 MiB.
	BodyMemory int64 `json:"body_memory,omitempty"`

	// How many requests to models are kept whole, with their answers, for administrators to inspect. They are in memory alone, and
	// bounded in size. Default: 0.
	Inspect int `json:"inspect,omitempty"`

	// What happens to a load when no request waits for it any more: "finish" or "stop". Default: finish.
	AbandonedLoads string `json:"abandoned_loads,omitempty"`

	// The longest time that an engine may make no progress, while it loads or answers, before it counts as hung. Once an
	// engine's speed is known, one that hangs during requests is ended sooner. Default: 5m.
	StallTimeout caddy.Duration `json:"stall_timeout,omitempty"`

	// How long a client may read nothing of its answer before its request is cancelled. Default: 1m.
	SlowClientTimeout caddy.Duration `json:"slow_client_timeout,omitempty"`

	// Whose prompts an engine's cache serves. With "shared", a request may be answered faster because another owner sent a
	// prompt with the same beginning, which its client can notice; with "private", an owner's prompts serve that owner
	// alone. Default: shared.
	PromptCache string `json:"prompt_cache,omitempty"`

	// What GET /v1/models lists: "loaded" for the loaded instances, "all" for every model. Default: loaded.
	ListModels string `json:"list_models,omitempty"`

	// What happens to a request for an unknown model, or for none: with "strict" it is refused; with "single" the one loaded
	// model of its kind answers, or the only one that exists. Default: strict.
	UnknownModel string `json:"unknown_model,omitempty"`

	// What happens to images for a model that can't see them, and to documents, audio and videos: with "refuse" their request is
	// refused; with "omit" they are left out, and the model gets a note in their place. Default: refuse.
	UnsupportedContent string `json:"unsupported_content,omitempty"`

	// The field in which OpenAI-style answers carry the model's thinking: "reasoning" or "reasoning_content".
	// Default: reasoning.
	ReasoningField string `json:"reasoning_field,omitempty"`

	// How engines are run, by name: "llama_server" is llama.cpp's llama-server, which runs GGUF models, and "mlx_lm" Apple's
	// mlx_lm.server, which runs MLX models.
	Engines map[string]*Engine `json:"engines,omitempty"`

	// Settings of single models, by key or another name that requests may use.
	Models map[string]Model `json:"models,omitempty"`

	// Request defaults, by a name that requests choose them by in the field "preset": the values of fields. The field
	// "system_prompt" is a system message for requests that have none.
	Presets map[string]node.Preset `json:"presets,omitempty"`

	// Which of the features that are off by default are allowed: "ephemeral_mcp", "plugin_mcp", "remote_mcp", "raw_grammar".
	// Default: none.
	Allow []string `json:"allow,omitempty"`

	// The hosts without a public address that a request's MCP server may have: names, addresses or networks, such as
	// 10.0.0.0/8, each with a port or without. Default: none.
	MCPPrivateHosts []string `json:"mcp_private_hosts,omitempty"`

	// How long a call of an MCP tool may take. Default: 1m.
	MCPTimeout caddy.Duration `json:"mcp_timeout,omitempty"`

	// How long an MCP server may be unused before its connection is closed and, if lmcaddy started it, its process ended.
	// Default: 10m.
	MCPIdle caddy.Duration `json:"mcp_idle,omitempty"`

	// How many answers of the model a chat with MCP tools may take. For the last one, the model gets no tools. Default: 25.
	MCPMaxRounds int `json:"mcp_max_rounds,omitempty"`

	// Where models are downloaded from; the first serves identifiers without a URL. Default: that of the environment
	// variable HF_ENDPOINT, else huggingface.co, with the token in HF_TOKEN.
	Hubs []Hub `json:"hubs,omitempty"`

	// Servers of models that are reached over the network.
	Remotes []Remote `json:"remotes,omitempty"`

	// The cluster that this server is a node of. It needs a PostgreSQL store, which the nodes share. Default: none.
	Cluster *Cluster `json:"cluster,omitempty"`

	// Additional names and addresses of this machine. Sites without authentication accept requests for them, and TLS on
	// demand issues certificates for them. Default: none.
	Hosts []string `json:"hosts,omitempty"`

	// Where conversations are stored, and for how long.
	Store Store `json:"store,omitzero"`

	// Which states of conversations are kept in files, so that they needn't be processed again.
	Warm Warm `json:"warm,omitzero"`

	log        *slog.Logger
	requestLog *slog.Logger // see recordedRequests
	settings   node.Settings
	gen        uint64
	warnOpen   func()               // warns about unprotected sites
	isExposed  func() bool          // others than the users of this machine are served
	grace      func() time.Duration // the HTTP app's grace period
	describing func() resource.Configuration
	opened     string // the key of the node in the pool; empty before Start
	pooled     *pooled
	node       *node.Node    // set before started is closed
	started    chan struct{} // closed when the node can be used
	requests   underway
	servers    map[*caddyhttp.Server]bool // servers whose connections are counted in requests
	retired    atomic.Bool                // a newer configuration has replaced this one
	replaced   chan struct{}              // closed when retired is set
}

// Model is the settings of one model.
type Model struct {
	// Other names of the model. A * stands for any characters but a slash.
	Aliases []string `json:"aliases,omitempty"`

	// How many tokens one request gets. Default: the model's maximum, but at most 32768, and no more than fits.
	ContextLength int `json:"context_length,omitempty"`

	// How many requests an instance answers at a time. Default: the engine's setting.
	Parallel int `json:"parallel,omitempty"`

	// The model that drafts for this one (speculative decoding). Default: none.
	DraftModel string `json:"draft_model,omitempty"`

	// Whether the model is loaded at start.
	Preload bool `json:"preload,omitempty"`

	// Whether the model is never evicted.
	Pin bool `json:"pin,omitempty"`

	// How long the model may be idle before it is unloaded, however it was loaded; 0: it stays loaded. Default: idle_ttl if
	// it was loaded on first use, else 0.
	TTL *caddy.Duration `json:"ttl,omitempty"`

	// Whether the states of its conversations may be kept in files. Default: true.
	Warm *bool `json:"warm,omitempty"`

	// The GPUs that the model may be on, by the engine's names, such as CUDA0; or none, for the processor. Default: the one with the most
	// room, or several if one is too small.
	Devices []string `json:"devices,omitempty"`

	// How many of its layers are on GPUs; 0: none. Default: all, or as many as there is room for.
	GPULayers *int `json:"gpu_layers,omitempty"`

	// Arguments appended to the engine's.
	Args []string `json:"args,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "lm", New: func() caddy.Module { return new(App) }}
}

// generation counts the apps that were started in this process.
var generation atomic.Uint64

// Provision reads the settings. It does no I/O, since it also runs for `lmcaddy validate`.
func (a *App) Provision(ctx caddy.Context) error {
	a.log, a.requestLog = recorded(ctx, "lm"), recordedRequests(ctx, "lm")
	a.warnOpen = func() {
		warnOpen(ctx, a.log)
		warnOnDemand(ctx, a.log)
	}
	a.isExposed = func() bool { return isExposed(ctx) }
	a.describing = func() resource.Configuration { return a.describe(ctx) }
	a.grace = func() time.Duration { return gracePeriod(ctx) }
	a.started, a.replaced = make(chan struct{}), make(chan struct{})
	replace := caddy.NewReplacer()
	var err error
	resolve := func(s string) string {
		if err == nil {
			s, err = replace.ReplaceOrErr(s, true, true)
		}
		return s
	}
	a.Home = home.Expand(resolve(a.Home))
	a.settings = node.Settings{
		Log:            a.log,
		JIT:            a.JIT == nil || *a.JIT,
		ListAll:        a.ListModels == "all",
		AnyName:        a.UnknownModel == "single",
		OmitsUnseen:    a.UnsupportedContent == "omit",
		ReasoningField: openai.ReasoningField(a.ReasoningField),
		Models:         map[string]node.ModelSettings{},
		Presets:        a.Presets,
		Version:        versionOf(),
	}
	a.settings.Gates, a.settings.MCP = a.gates(), a.mcp(resolve)
	a.settings.Store, a.settings.Warm = a.Store.settings(resolve), a.Warm.settings()
	for _, dir := range a.ModelsDirs {
		a.settings.ModelsDirs = append(a.settings.ModelsDirs, home.Absolute(resolve(dir)))
	}
	for key, m := range a.Models {
		a.settings.Models[strings.ToLower(key)] = m.settings()
	}
	noEngine := a.engines(node.Engines(), resolve)
	if err := errors.Join(err, noEngine, a.loading(), a.hubs(replace), a.remotes(replace), a.clustered(replace), onEvent(ctx, "stopping", a.stopping), a.onServing(ctx)); err != nil {
		return err
	}
	return ctx.GetMetricsRegistry().Register(collector{a}) // each configuration has a registry, and one app
}

// Validate checks what can be checked without starting.
func (a *App) Validate() error {
	for _, option := range choices {
		if err := oneOf(option.name, *option.of(a), option.values...); err != nil {
			return err
		}
	}
	for _, gate := range a.Allow {
		if err := oneOf("allow", gate, Gates...); err != nil {
			return err
		}
	}
	if err := errors.Join(checkHosts("hosts", a.Hosts), a.Warm.check()); err != nil {
		return err
	}
	return a.settings.Validate()
}

// ListModels are the values of the option list_models.
var ListModels = []string{"loaded", "all"}

// choices are the options with a fixed set of values. The first value is the default.
var choices = []struct {
	name   string
	of     func(*App) *string
	values []string
}{
	{"list_models", func(a *App) *string { return &a.ListModels }, ListModels},
	{"unknown_model", func(a *App) *string { return &a.UnknownModel }, []string{"strict", "single"}},
	{"unsupported_content", func(a *App) *string { return &a.UnsupportedContent }, []string{"refuse", "omit"}},
	{"abandoned_loads", func(a *App) *string { return &a.AbandonedLoads }, []string{"finish", "stop"}},
	{"prompt_cache", func(a *App) *string { return &a.PromptCache }, []string{"shared", "private"}},
	{"reasoning_field", func(a *App) *string { return &a.ReasoningField }, []string{string(openai.ReasoningPlain), string(openai.ReasoningContent)}},
}

func oneOf(name, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %v", name, value, allowed)
}

// appOf returns the configuration's app. Caddy makes one with the defaults if the configuration has none.
func appOf(ctx caddy.Context) (*App, error) {
	app, err := ctx.App("lm")
	if err != nil {
		return nil, err
	}
	return app.(*App), nil
}

// Start applies the settings to the home's node.
func (a *App) Start() error {
	dir, err := a.openHome()
	if err != nil {
		return err
	}
	if a.pooled, err = a.open(dir); err != nil {
		return err
	}
	n := a.pooled.Node
	a.settings.Exposed = a.isExposed()
	a.gen = generation.Add(1)
	if err := n.Push(a.gen, a.settings); err != nil {
		return err
	}
	a.node = n
	close(a.started)
	a.pooled.socket.push(a.gen, a.service())
	a.warnOpen()
	return nil
}

// openHome makes the home folder, and returns its path without symbolic links.
func (a *App) openHome() (home.Dir, error) {
	dir, err := home.FromEnvironment()
	if a.Home != "" {
		dir, err = home.Abs(a.Home)
	}
	if err != nil {
		return "", err
	}
	return dir.Real()
}

// Stop withdraws the settings. The engines keep running: requests may still be in progress.
func (a *App) Stop() error {
	a.pop()
	return nil
}

// pop withdraws the settings. It may be called more than once.
func (a *App) pop() {
	if a.node != nil {
		a.node.Pop(a.gen)
		a.pooled.socket.pop(a.gen)
	}
}

// Cleanup releases the node after the last request of this configuration has been answered.
func (a *App) Cleanup() error {
	if a.opened == "" {
		return nil
	}
	a.pop()
	key := a.opened
	a.opened = ""
	return a.leave(key)
}

// Node returns the node. It waits until the app has started: the HTTP app may start before it.
func (a *App) Node(ctx context.Context) (*node.Node, error) {
	if n := a.running(); n != nil {
		return n, nil
	}
	select {
	case <-a.started:
		return a.node, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// running returns the node, or nil if the app hasn't started.
func (a *App) running() *node.Node {
	select {
	case <-a.started:
		return a.node
	default:
		return nil
	}
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.Validator    = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
