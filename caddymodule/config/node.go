package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/cluster"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/warm"
)

// Resolve replaces the placeholders in the settings that are shown to people, and makes their paths absolute.
func (s *Settings) Resolve(replace *caddy.Replacer) error {
	var failed error
	resolve := needed(replace, &failed)
	s.Home = home.Expand(resolve(s.Home))
	for i, dir := range s.ModelsDirs {
		s.ModelsDirs[i] = home.Absolute(resolve(dir))
	}
	s.Store.PostgresURL = resolve(s.Store.PostgresURL)
	return failed
}

// needed returns a function that replaces placeholders, of which none may be empty. It keeps the first error.
func needed(replace *caddy.Replacer, failed *error) func(string) string {
	return func(text string) string {
		said, err := replace.ReplaceOrErr(text, true, true)
		*failed = cmp.Or(*failed, err)
		return said
	}
}

// Note notes what is surely meant otherwise.
func (s *Settings) Note(text string) { s.Notes = append(s.Notes, text) }

// complete returns a copy of the settings in which the options that aren't set have their defaults.
func (s *Settings) complete() (*Settings, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	full := new(Settings)
	if err := json.Unmarshal(text, full); err != nil {
		return nil, err
	}
	return full, option.SetDefaults(full)
}

// NodeSettings returns the settings as a node has them. They must have been resolved. It warns of what is insecure.
func (s *Settings) NodeSettings(log *slog.Logger, replace *caddy.Replacer) (node.Settings, error) {
	full, err := s.complete()
	if err != nil {
		return node.Settings{}, err
	}
	var failed error
	resolve := needed(replace, &failed)
	to := node.Settings{
		Log:            log,
		ModelsDirs:     full.ModelsDirs,
		JIT:            *full.JIT,
		ListAll:        full.ListModels == "all",
		AnyName:        full.UnknownModel == "single",
		OmitsUnseen:    full.UnsupportedContent == "omit",
		ReasoningField: openai.ReasoningField(full.ReasoningField),
		IdleTTL:        time.Duration(*full.IdleTTL),
		MaxLoaded:      full.MaxLoaded,
		MaxDownloads:   full.MaxDownloads,
		Queue:          *full.Queue,
		Inspect:        full.Inspect,
		BodyMemory:     int64(full.BodyMemory),
		StallTimeout:   time.Duration(full.StallTimeout),
		SlowClient:     time.Duration(full.SlowClientTimeout),
		PrivatePrompts: full.PromptCache == "private",
		Gates: node.Gates{
			EphemeralMCP: slices.Contains(full.Allow, "ephemeral_mcp"),
			PluginMCP:    slices.Contains(full.Allow, "plugin_mcp"),
			RemoteMCP:    slices.Contains(full.Allow, "remote_mcp"),
			RawGrammar:   slices.Contains(full.Allow, "raw_grammar"),
		},
		// without their defaults: the node warns of what is set and has no effect
		MCP: node.MCPSettings{
			Settings:  servers.Settings{CallTimeout: time.Duration(s.MCPTimeout), IdleTTL: time.Duration(s.MCPIdle)},
			MaxRounds: s.MCPMaxRounds,
		},
		Store: node.StoreSettings{
			PostgresURL: full.Store.PostgresURL,
			Bounds:      store.Bounds{Age: time.Duration(full.Store.MaxAge), Number: full.Store.MaxTurns},
			TokenGrace:  time.Duration(*full.Store.TokenGrace),
		},
		Warm: node.WarmSettings{
			Settings: warm.Settings{
				Off: full.Warm.Off, Size: int64(full.Warm.Size), MaxAge: time.Duration(*full.Warm.MaxAge),
			},
			SaveAfter: time.Duration(full.Warm.SaveAfter), MinTokens: full.Warm.MinTokens,
		},
		Engines: map[string]node.EngineSettings{},
		Models:  map[string]node.ModelSettings{},
		Presets: full.Presets,
	}
	full.named(&to, resolve)
	return to, errors.Join(failed, full.budgets(&to), full.hubs(&to, log, replace), full.remotes(&to, log, replace),
		full.cluster(&to, log, replace))
}

// named puts what has names of its own into the settings: hosts, engines, models.
func (s *Settings) named(to *node.Settings, resolve func(string) string) {
	for _, host := range s.MCPPrivateHosts {
		to.MCP.PrivateHosts = append(to.MCP.PrivateHosts, resolve(host))
	}
	for _, described := range node.BuiltIn() {
		if e := s.Engines[described.Name]; e != nil {
			to.Engines[described.Name] = e.node(described, resolve)
		}
	}
	for key, m := range s.Models {
		to.Models[strings.ToLower(key)] = m.node()
	}
}

func (s *Settings) budgets(to *node.Settings) (failed error) {
	budget := func(word string, b Budget) node.Budget {
		read, err := b.Node()
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("%s: %w", word, err))
		}
		return read
	}
	to.MemoryBudget = budget("memory_budget", s.MemoryBudget)
	to.GPUMemory = node.GPUMemory{Each: budget("gpu_memory", s.GPUMemory)}
	for name, b := range s.GPUMemories {
		if to.GPUMemory.ByName == nil {
			to.GPUMemory.ByName = map[string]node.Budget{}
		}
		to.GPUMemory.ByName[name] = budget("gpu_memory "+name, b)
	}
	return failed
}

// node returns the model's settings, which may be nil.
func (m *Model) node() node.ModelSettings {
	if m == nil {
		return node.ModelSettings{}
	}
	return node.ModelSettings{
		Aliases: m.Aliases, ContextLength: m.ContextLength, Parallel: m.Parallel, Draft: m.DraftModel, Preset: m.Preset, Adapter: m.Lora,
		Preload: m.Preload, Pinned: m.Pin,
		TTL: (*time.Duration)(m.TTL), Warm: m.Warm, Args: m.Args, Devices: m.Devices, GPULayers: m.GPULayers,
	}
}

// hubs puts the hubs into the settings. Without any, the environment names one.
func (s *Settings) hubs(to *node.Settings, log *slog.Logger, replace *caddy.Replacer) error {
	for _, h := range s.Hubs {
		address, err := replace.ReplaceOrErr(h.URL, true, true)
		if err != nil {
			return fmt.Errorf("hub %s: %w", h.URL, err)
		}
		token, err := replace.ReplaceOrErr(h.Token, false, true)
		if err != nil {
			return fmt.Errorf("hub %s: its token: %w", address, err)
		}
		if h.Token != "" && token == "" {
			log.Warn("the hub is asked without a token: its placeholder is empty", "hub", address)
		}
		to.Hubs = append(to.Hubs, hub.Config{URL: address, Token: token, Stall: time.Duration(h.StallTimeout)})
	}
	if len(s.Hubs) > 0 {
		return nil
	}
	mirror := os.Getenv(hubVariable)
	h := hub.Config{URL: cmp.Or(mirror, hub.PublicHub), Token: os.Getenv(tokenVariable), Mirror: mirror != ""}
	if err := h.Validate(); err != nil {
		return fmt.Errorf("the environment variable %s: %w", hubVariable, err)
	}
	to.Hubs = []hub.Config{h}
	return nil
}

func (s *Settings) remotes(to *node.Settings, log *slog.Logger, replace *caddy.Replacer) (failed error) {
	for i := range s.Remotes {
		r := &s.Remotes[i]
		c := r.node(func(text string) string {
			said, err := replace.ReplaceOrErr(text, false, true)
			if err != nil && failed == nil {
				failed = fmt.Errorf("remote %s: %w", option.WithoutPassword(r.URL), err)
			}
			return said
		})
		if r.Key != "" && c.Key == "" {
			log.Warn("the remote is asked without a key: its placeholder is empty", "remote", c.Name)
		}
		if c.SendsKeyInClear() {
			log.Warn("the key of a remote is sent without TLS, so others on its network can read it: use https, "+
				"or a tunnel such as WireGuard", "remote", c.Name)
		}
		to.Remotes = append(to.Remotes, c)
	}
	return failed
}

func (s *Settings) cluster(to *node.Settings, log *slog.Logger, replace *caddy.Replacer) error {
	if s.Cluster == nil {
		return nil
	}
	address, err := replace.ReplaceOrErr(s.Cluster.URL, true, true)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	to.Cluster = cluster.Settings{URL: strings.TrimRight(address, "/")}
	if s.Cluster.TLSCA != "" {
		to.Cluster.CA = home.Absolute(replace.ReplaceAll(s.Cluster.TLSCA, ""))
	}
	if nodes := (remote.Config{URL: to.Cluster.URL, Key: "a node's"}); nodes.SendsKeyInClear() {
		log.Warn("the nodes of the cluster reach this one without TLS, so others on the network can read prompts and the nodes' "+
			"keys: use https, or a tunnel such as WireGuard",
			"node", to.Cluster.Name())
	}
	return nil
}
