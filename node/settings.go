package node

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node/cluster"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/warm"
)

// Settings are the settings of a configuration. With the zero value, nothing is loaded on first use.
type Settings struct {
	Log *slog.Logger // the node's log while these settings are in effect; nil: unchanged

	ModelsDirs     []string // additional models folders, as absolute paths
	JIT            bool     // load a model on first use
	OmitsUnseen    bool     // content that a model can't take is left out, with a note to the model
	ListAll        bool     // GET /v1/models lists every model, not only the loaded ones
	AnyName        bool     // a request for an unknown model, or for none, uses the only model
	ReasoningField openai.ReasoningField

	IdleTTL      time.Duration // a model loaded on first use is unloaded after this time; 0: never
	MaxLoaded    int           // maximum number of instances; 0: limited only by memory
	MaxDownloads int           // how many models are downloaded at a time; 0: [fetch.DefaultAtOnce]
	MemoryBudget Budget        // of the machine's memory, for all instances together
	GPUMemory    GPUMemory     // of GPUs with memory of their own, for all instances together
	Queue        int           // maximum waiting requests per model; 0: unlimited
	Inspect      int           // how many requests are kept whole, in memory; 0: none
	BodyMemory   int64         // maximum size of all request bodies together, in bytes; 0: depends on the machine's memory
	StallTimeout time.Duration // how long an engine may make no progress; 0: five minutes
	SlowClient   time.Duration // how long a client may read nothing of its response; 0: one minute

	PrivatePrompts bool // keeps requests of different owners from sharing cached prompts

	Gates Gates
	MCP   MCPSettings

	Hubs []hub.Config // where models may be downloaded from; the first serves identifiers that aren't URLs

	Store StoreSettings
	Warm  WarmSettings

	Engines map[string]EngineSettings // by name
	Models  map[string]ModelSettings  // by key or another name of the model, in lower case
	Presets map[string]Preset         // by name

	Remotes []remote.Config // each with a name
	Cluster cluster.Settings
	Exposed bool   // others than the users of this machine are served
	Version string // of the program; empty: unknown

	aliases *aliases // of the Models; nil: not indexed yet
}

// Gates are risky features that a configuration may enable.
type Gates struct {
	EphemeralMCP bool `json:"ephemeral_mcp"` // native chat: MCP servers that a request names
	PluginMCP    bool `json:"plugin_mcp"`    // native chat: the MCP servers of mcp.json
	RemoteMCP    bool `json:"remote_mcp"`    // /v1/responses: MCP servers that a request names
	RawGrammar   bool `json:"raw_grammar"`   // chat and text completions: a grammar that a request brings
}

// GPUMemory limits what instances may take of GPUs with memory of their own.
type GPUMemory struct {
	Each   Budget            // of each; the zero value: all of it
	ByName map[string]Budget // instead of Each, by the engine's name for the GPU, such as CUDA0
}

// Budget is a limit on memory: a share, or a size. The zero value means unlimited.
type Budget struct {
	Share float64 // of all of it; 0 to 1
	Bytes int64   // used if Share is 0
}

// EngineSettings are the settings of an engine.
type EngineSettings struct {
	Path     string   // of the executable; empty: chosen by the engine, such as the selected runtime
	Command  []string // instead of Path: the executable, and arguments that come before all others; nil: chosen by the engine
	Parallel int      // concurrent requests per instance; 0: defaultParallel
	Args     []string // added to the arguments of every instance

	// On: it never runs without one; Off: always; Auto: without one if it can't use its GPU in it, on this machine alone
	Sandbox  schedule.Toggle
	Readable []string // additional files and folders that it may read and execute in its sandbox
}

// ModelSettings are the settings of a model.
type ModelSettings struct {
	Aliases       []string // other names, which may contain *
	ContextLength int      // tokens per request; 0: depends on the model
	Parallel      int      // concurrent requests; 0: the engine's setting
	Draft         string   // its draft model, by any of its names; or "mtp", "ngram-…" or "off"
	Preset        string   // of requests that name none; empty: none
	Adapter       string   // the adapter of requests that name none; empty: none
	Preload       bool
	Pinned        bool           // never evicted
	TTL           *time.Duration // overrides IdleTTL, even if it was loaded by hand
	Warm          *bool          // whether states of its prompts may be kept; nil: they may
	Args          []string       // appended to the engine's arguments

	Devices   []string // the GPUs that it may be on, by the engine's names; nil: any. NoDevice alone stands for the processor.
	GPULayers *int     // how many of its layers are on GPUs; nil: as many as there is room for
}

// NoDevice in ModelSettings.Devices means that the model is on the processor.
const NoDevice = "none"

// Validate returns an error if the settings are invalid in a way that no single value shows.
func (s Settings) Validate() error {
	for _, dir := range s.ModelsDirs {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("models_dir %s: the path must be absolute", dir)
		}
	}
	if s.Inspect > record.MaxInspect {
		return fmt.Errorf("inspect: a number of requests from 0 to %d", record.MaxInspect)
	}
	if err := s.MCP.Validate(); err != nil {
		return err
	}
	for _, h := range s.Hubs {
		if err := h.Validate(); err != nil {
			return err
		}
	}
	for name, p := range s.Presets {
		if err := p.validate(name); err != nil {
			return err
		}
	}
	if err := checkRemotes(s.Remotes); err != nil {
		return err
	}
	if err := s.Cluster.Validate(s.Store.PostgresURL != ""); err != nil {
		return err
	}
	return s.checkModels()
}

func (s Settings) checkModels() error {
	names := map[string]string{}
	for key, m := range s.Models {
		for _, alias := range m.Aliases {
			if _, err := path.Match(alias, ""); err != nil {
				return fmt.Errorf("model %s: alias %q is not a pattern: use * for any characters", key, alias)
			}
			name := catalog.Normal(alias)
			if other, ok := names[name]; ok && other != key {
				return fmt.Errorf("alias %s: it is given to two models, %s and %s", alias, min(key, other), max(key, other))
			}
			names[name] = key
		}
		if _, isKnown := s.Presets[m.Preset]; m.Preset != "" && !isKnown {
			return fmt.Errorf("model %s: there is no preset %q: add a block preset %s with its fields", key, m.Preset, m.Preset)
		}
		if slices.Contains(m.Devices, NoDevice) && len(m.Devices) > 1 {
			return fmt.Errorf("model %s: devices: %s must not be combined with the names of GPUs", key, NoDevice)
		}
	}
	return nil
}

func checkRemotes(all []remote.Config) error {
	seen := map[string]bool{}
	for i := range all {
		c := &all[i]
		if err := c.Validate(); err != nil {
			return fmt.Errorf("remote %s: %w", c.Name, err)
		}
		name := strings.ToLower(c.Name)
		if name == "" || seen[name] {
			return fmt.Errorf("remote %s: another one has this name: give each a name of its own", c.Name)
		}
		seen[name] = true
	}
	return nil
}

// Preset is a set of request defaults: JSON values by field. "system_prompt" is a system message for requests that have none.
type Preset map[string]json.RawMessage

func (p Preset) validate(name string) error {
	for field, value := range p {
		switch {
		case strings.ContainsFunc(field, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) || field == "":
			return fmt.Errorf("preset %s: %q is not a field name", name, field)
		case !json.Valid(value):
			return fmt.Errorf("preset %s: the value of %s is not JSON: %s", name, field, value)
		case field == request.SystemPrompt && gjson.ParseBytes(value).Type != gjson.String:
			return fmt.Errorf("preset %s: system_prompt must be a string", name)
		case field == "messages" || field == "prompt" || field == "preset":
			return fmt.Errorf("preset %s: %s can't be preset", name, field)
		}
	}
	return nil
}

// DefaultRounds is how many answers of a model a chat with MCP tools may take if the settings don't say.
const DefaultRounds = 25

// MCPSettings are the settings of chats in which the model calls tools of MCP servers.
type MCPSettings struct {
	servers.Settings
	MaxRounds int // how many answers of the model a chat may take, the last of them without tools; 0: DefaultRounds
}

// Validate returns an error if the settings are invalid. It names the option.
func (m MCPSettings) Validate() error {
	for _, host := range m.PrivateHosts {
		if err := servers.CheckPrivateHost(host); err != nil {
			return fmt.Errorf("mcp_private_hosts: %w", err)
		}
	}
	return nil
}

// WarmSettings say which states of prompts are kept in files.
type WarmSettings struct {
	warm.Settings
	SaveAfter time.Duration // that an instance is unused; 0: nothing is saved
	MinTokens int           // of a state
}

func (s *Settings) isCold(m ModelSettings) bool {
	return s.Warm.Off || m.Warm != nil && !*m.Warm
}
