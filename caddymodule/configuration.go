package caddymodule

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
)

// option is an option of the app, as it is shown to people.
type option struct {
	name  string
	of    func(*App) string // its value as a Caddyfile has it; empty: it isn't set
	stand func(*App) string // what is in force if it isn't set
}

func text(s string) func(*App) string { return func(*App) string { return s } }

// options are all options of the app but its blocks.
var options = []option{
	{"abandoned_loads", func(a *App) string { return a.AbandonedLoads }, text("finish")},
	{"allow", func(a *App) string { return words(a.Allow) }, text("nothing")},
	{"body_memory", func(a *App) string { return bytesOf(a.BodyMemory) }, text("1/16 of the memory, at least 256 MiB")},
	{"cluster", func(a *App) string { return a.Cluster.address() }, text(noCluster)},
	{"cluster tls_ca", func(a *App) string { return a.Cluster.authority() }, text("the system's authorities")},
	{"cluster tls_insecure", func(a *App) string { return a.Cluster.insecure() }, text("off")},
	{"gpu_memory", func(a *App) string { return a.gpuMemoryInWords() }, text(defaultGPUMemory)},
	{"home", func(a *App) string { return a.Home }, func(a *App) string { return a.homeInForce() }},
	{"hosts", func(a *App) string { return words(a.Hosts) }, text("none")},
	{"hub", func(a *App) string { return a.hubsInForce(len(a.Hubs)) }, func(a *App) string { return a.hubsInForce(1) }},
	{"idle_ttl", func(a *App) string { return durationAt(a.IdleTTL) }, text(timeOf(defaultIdleTTL))},
	{"inspect", func(a *App) string { return number(a.Inspect) }, text("0")},
	{"jit", func(a *App) string { return onOffAt(a.JIT) }, text("on")},
	{"list_models", func(a *App) string { return a.ListModels }, text("loaded")},
	{"max_downloads", func(a *App) string { return number(a.MaxDownloads) }, text(strconv.Itoa(fetch.DefaultAtOnce))},
	{"max_loaded", func(a *App) string { return number(a.MaxLoaded) }, text("0 (limited only by memory)")},
	{"mcp_idle", func(a *App) string { return durationOf(a.MCPIdle) }, text("10m")},
	{"mcp_max_rounds", func(a *App) string { return number(a.MCPMaxRounds) }, text(strconv.Itoa(node.DefaultRounds))},
	{"mcp_private_hosts", func(a *App) string { return words(a.MCPPrivateHosts) }, text("none")},
	{"mcp_timeout", func(a *App) string { return durationOf(a.MCPTimeout) }, text("1m")},
	{"memory_budget", func(a *App) string { return a.MemoryBudget }, text(defaultMemoryBudget)},
	{"models_dir", func(a *App) string { return words(a.settings.ModelsDirs) }, text("none but that of the home")},
	{"preset", func(a *App) string { return words(slices.Sorted(maps.Keys(a.Presets))) }, text("none")},
	{"prompt_cache", func(a *App) string { return a.PromptCache }, text("shared")},
	{"queue", func(a *App) string { return numberAt(a.Queue) }, text(strconv.Itoa(defaultQueue))},
	{"reasoning_field", func(a *App) string { return a.ReasoningField }, text("reasoning")},
	{"slow_client_timeout", func(a *App) string { return durationOf(a.SlowClientTimeout) }, text("1m")},
	{"stall_timeout", func(a *App) string { return durationOf(a.StallTimeout) }, text("5m")},
	{"store", func(a *App) string { return databaseOf(a.settings.Store.PostgresURL) }, text("sqlite")},
	{"store max_age", func(a *App) string { return durationOf(a.Store.MaxAge) }, text("0 (until it is deleted)")},
	{"store max_turns", func(a *App) string { return number(a.Store.MaxTurns) }, text("0 (unlimited)")},
	{"store token_grace", func(a *App) string { return durationAt(a.Store.TokenGrace) }, text(timeOf(defaultTokenGrace))},
	{"unknown_model", func(a *App) string { return a.UnknownModel }, text("strict")},
	{"unsupported_content", func(a *App) string { return a.UnsupportedContent }, text("refuse")},
	{"warm", func(a *App) string { return a.Warm.inWords() }, text("on")},
	{"warm daily", func(a *App) string { return bytesOf(a.Warm.Daily) }, text("ten times the size, 64 to 256 GiB")},
	{"warm max_age", func(a *App) string { return durationAt(a.Warm.MaxAge) }, text(timeOf(defaultWarmAge))},
	{"warm min_tokens", func(a *App) string { return number(a.Warm.MinTokens) }, text(strconv.Itoa(defaultMinTokens))},
	{"warm save_after", func(a *App) string { return durationOf(a.Warm.SaveAfter) }, text(timeOf(defaultSaveAfter))},
	{"warm size", func(a *App) string { return bytesOf(a.Warm.Size) }, text("1/10 of the free disk, at most 50 GiB")},
}

// inForce returns what the configuration says, and what is in force where it says nothing.
func (a *App) inForce() resource.Configuration {
	c := resource.Configuration{File: program().ConfigFile, Home: a.homeInForce(), ModelsDirs: append([]string{}, a.settings.ModelsDirs...), Engines: []resource.Block{}, Models: []resource.Block{}}
	for _, o := range options {
		s := resource.Setting{Name: o.name, Value: o.of(a), Source: resource.FromFile}
		if s.Value == "" {
			s.Value, s.Source = o.stand(a), resource.FromDefault
			if o.isFromEnvironment(a) {
				s.Source = resource.FromEnvironment
			}
		}
		c.Settings = append(c.Settings, s)
	}
	for _, described := range node.Engines() {
		c.Engines = append(c.Engines, resource.Block{Name: described.Name, Settings: a.Engines[described.Name].inForce(described)})
	}
	for i := range a.Remotes {
		c.Remotes = append(c.Remotes, resource.Block{Name: a.Remotes[i].name(), Settings: a.Remotes[i].inForce()})
	}
	for _, key := range slices.Sorted(maps.Keys(a.Models)) {
		c.Models = append(c.Models, resource.Block{Name: key, Settings: a.Models[key].inForce()})
	}
	return c
}

func (o *option) isFromEnvironment(a *App) bool {
	switch o.name {
	case "home":
		user, err := os.UserHomeDir()
		return err == nil && a.homeInForce() != filepath.Join(user, ".lmcaddy")
	case "hub":
		return os.Getenv(hubVariable) != "" || os.Getenv(tokenVariable) != ""
	default:
		return false
	}
}

func (a *App) homeInForce() string {
	if a.Home != "" {
		return home.Absolute(a.Home)
	}
	dir, _ := home.FromEnvironment() // empty if none is known
	return string(dir)
}

// hubsInForce are the addresses of the first n hubs, without their tokens.
func (a *App) hubsInForce(n int) string {
	var all []string
	for _, h := range a.settings.Hubs[:min(n, len(a.settings.Hubs))] {
		said := withoutPassword(h.URL)
		if h.Token != "" {
			said += " (with a token)"
		}
		all = append(all, said)
	}
	return strings.Join(all, ", ")
}

// inForce returns the settings of an engine, which may be nil.
func (e *Engine) inForce(described node.Engine) []resource.Setting {
	if e == nil {
		e = new(Engine)
	}
	all := []resource.Setting{
		setting("path", cmp.Or(e.Path, words(e.Command)), "the selected runtime, else the one on PATH"),
		setting("parallel", number(e.Parallel), "4, or fewer if memory is scarce"),
	}
	if described.NoSandbox == "" {
		all = append(all, setting("sandbox", onOffAt(e.Sandbox), "on"))
	}
	for _, word := range slices.Sorted(maps.Keys(e.Options)) {
		all = append(all, setting(word, cmp.Or(words(e.Options[word]), "on"), ""))
	}
	for _, s := range []resource.Setting{setting("args", secretArgs(e.Args), ""), setting("sandbox_read", words(e.SandboxRead), "")} {
		if s.Value != "" {
			all = append(all, s)
		}
	}
	return all
}

// inForce returns the settings that a model has.
func (m Model) inForce() []resource.Setting {
	all := []resource.Setting{}
	for _, s := range []resource.Setting{
		setting("alias", words(m.Aliases), ""), setting("args", secretArgs(m.Args), ""), setting("context_length", number(m.ContextLength), ""),
		setting("devices", words(m.Devices), ""),
		setting("draft_model", m.DraftModel, ""), setting("gpu_layers", numberAt(m.GPULayers), ""), setting("parallel", number(m.Parallel), ""), setting("pin", yes(m.Pin), ""),
		setting("preload", yes(m.Preload), ""), setting("ttl", durationAt(m.TTL), ""), setting("warm", onOffAt(m.Warm), ""),
	} {
		if s.Value != "" {
			all = append(all, s)
		}
	}
	return all
}

// gpuMemoryInWords is what is set of gpu_memory: that of all GPUs, then of single ones.
func (a *App) gpuMemoryInWords() string {
	var all []string
	if a.GPUMemory != "" {
		all = append(all, a.GPUMemory)
	}
	for _, name := range slices.Sorted(maps.Keys(a.GPUMemories)) {
		all = append(all, name+" "+a.GPUMemories[name])
	}
	return strings.Join(all, ", ")
}

// setting is an option with what is in force if its value is empty.
func setting(name, value, otherwise string) resource.Setting {
	if value == "" {
		return resource.Setting{Name: name, Value: otherwise, Source: resource.FromDefault}
	}
	return resource.Setting{Name: name, Value: value, Source: resource.FromFile}
}

func (w Warm) inWords() string {
	switch {
	case w.Off:
		return "off"
	case w != (Warm{}):
		return "on"
	}
	return ""
}

// describe returns the configuration with its sites.
func (a *App) describe(ctx caddy.Context) resource.Configuration {
	c := a.inForce()
	c.Sites = sitesOf(ctx)
	return c
}
