package node

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	llamawire "github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// warnIdle warns about settings that have no effect: missing models and folders, and gates that let nothing through.
func (n *Node) warnIdle(s *Settings) {
	n.warnIdleMCP(s)
	n.warnIdleWarm(s)
	n.Names.warnTaken()
	for _, dir := range s.ModelsDirs {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			n.log.Warn("a models folder doesn't exist: correct its path (models_dir), or create it", "folder", dir)
		case err != nil:
			n.log.Warn("a models folder can't be read", "folder", dir, "error", err)
		case !info.IsDir():
			n.log.Warn("models_dir is not a folder: give the folder that contains the model files", "folder", dir)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		if e := n.Engines.byName[name]; s.Engines[name].Path != "" && e.Find != nil {
			if _, err := e.Find(e.setup); err != nil {
				n.log.Warn("no model can be loaded", "error", err)
			}
		}
	}
	by := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		ms := s.Models[name]
		if key := n.Names.warnUnknown("the settings of a model have no effect", name); key != "" && by[key] != "" {
			n.log.Warn("two blocks of settings are for the same model, and one of them has no effect: merge them", "model", key,
				"blocks", []string{by[key], name})
		} else if key != "" {
			by[key] = name
			for _, alias := range ms.Aliases { // a key goes before an alias
				if m, err := n.catalog.Known(alias); err == nil && isKeyOf(&m, alias) && m.Key != key {
					n.log.Warn("an alias has no effect, since it is the key of another model: choose another alias",
						"alias", alias, "model", key)
				}
			}
		}
		if selfDraft(ms.Draft) != "" || ms.Draft == draftOff {
			continue
		}
		if _, unknown := n.catalog.Companion(s.resolve(ms.Draft), filename.Drafter, n.Names.means(name)); ms.Draft != "" && unknown != nil {
			n.Names.warnUnknown("a model can't be loaded without its draft model", s.resolve(ms.Draft))
		}
	}
}

func (n *Names) warnUnknown(what, name string) (key string) {
	asked := n.remotes.Asked()
	m, err := n.lookup(n.ctx, name)
	missing, ok := errors.AsType[*catalog.NotFoundError](err)
	if ok && n.remotes.Await(n.ctx, asked) {
		m, err = n.lookup(n.ctx, name)
		missing, ok = errors.AsType[*catalog.NotFoundError](err)
	}
	if ok {
		n.log.Warn(what, "model", name, "reason", missing.Error())
	}
	return m.Key
}

func (n *Node) warnIdleMCP(s *Settings) {
	g, m := s.Gates, s.MCP
	namesServers := g.EphemeralMCP || g.RemoteMCP
	if len(m.PrivateHosts) > 0 && !namesServers {
		n.log.Warn("mcp_private_hosts has no effect: requests may not name MCP servers; allow ephemeral_mcp lets them")
	}
	if (m.CallTimeout > 0 || m.IdleTTL > 0 || m.MaxRounds > 0) && !namesServers && !g.PluginMCP {
		n.log.Warn("mcp_timeout, mcp_idle and mcp_max_rounds have no effect: no MCP server may be used; " +
			"allow plugin_mcp or ephemeral_mcp lets chats use them")
	}
	if !g.PluginMCP {
		return
	}
	if plugins, err := n.MCP.Plugins(); err == nil && len(plugins) == 0 { // an error was logged
		n.log.Warn("allow plugin_mcp has no effect until a file lists MCP servers", "file", n.home.MCP())
	}
	tokens, err := n.Access.Tokens.List(n.ctx)
	if err == nil && !slices.ContainsFunc(tokens, func(t access.Token) bool { return t.Identity().May(access.ScopeMCPPlugin) }) {
		n.log.Info("no token has the scope mcp.plugin: only commands on this machine can use the servers of mcp.json; " +
			"lmcaddy token create makes one")
	}
}

// warnIdleWarm warns about settings because of which states of prompts aren't kept, or that keep nothing from being kept.
func (n *Node) warnIdleWarm(s *Settings) {
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		ms := s.Models[name]
		m, err := n.Names.lookup(n.ctx, name)
		if err != nil {
			continue
		}
		e := n.Engines.of(&m)
		_, saves := e.process.(process.Saver)
		switch {
		case ms.Warm != nil && !saves:
			n.log.Warn("warm has no effect for a model: its engine can't save states of conversations; leave it out",
				"model", name, "engine", e.Name)
		case ms.Warm != nil && *ms.Warm && s.Warm.Off:
			n.log.Warn("warm on has no effect for a model: states of conversations are switched off for all (warm off)", "model", name)
		case !s.isCold(ms):
			n.warnUnsavable(e, ms.Args, "model", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Engines.byName)) {
		if !s.Warm.Off {
			n.warnUnsavable(n.Engines.byName[name], s.Engines[name].Args, "engine", name)
		}
	}
}

// warnUnsavable warns if the installed engine, or one with these arguments, saves no states, unless no engine of the kind does.
func (n *Node) warnUnsavable(e *engine, args []string, of, name string) {
	saver, ok := e.process.(process.Saver)
	if !ok {
		return
	}
	build, err := e.process.Probe(n.ctx)
	if err != nil {
		return // it isn't installed
	}
	can := func(args ...string) bool {
		return saver.CanSave(&schedule.Spec{Engine: e.Name, Model: catalog.Model{Type: catalog.TypeLLM}, Args: args}, build)
	}
	switch {
	case !can():
		if of == "engine" {
			n.log.Info("states of conversations aren't kept: this version of the engine can't save them",
				"engine", name, "version", build.Version)
		}
	case !can(args...):
		useless := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return can(arg) })
		n.log.Warn("states of conversations aren't kept, because arguments keep the engine from saving them or make them useless: leave "+
			"these arguments out, or switch warm off", of, name, "arguments", useless)
	}
}

// Mistakes returns sentences without a full stop about settings that are surely meant otherwise, and aren't refused.
func (s *Settings) Mistakes() (all []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Presets)) {
		all = append(all, s.Presets[name].mistakes(name)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		all = append(all, argumentMistakes("engine "+name, s.Engines[name].Args, "")...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		m := s.Models[name]
		layers := ""
		if m.GPULayers != nil {
			layers = "gpu_layers"
		}
		all = append(all, argumentMistakes("model "+name, m.Args, layers)...)
	}
	return all
}

// ownFields are fields of chats in one of the APIs that aren't about sampling.
var ownFields = []string{
	"max_output_tokens", "max_tokens", "max_completion_tokens", "n_predict", "tools", "tool_choice", "parallel_tool_calls",
	"response_format",
	"logprobs", "top_logprobs", "reasoning", "reasoning_effort", "thinking", "chat_template_kwargs", "stop", "stop_sequences", "stream",
	"stream_options", "ttl", "draft_model", "model", "system_prompt", "store", "integrations", "context_length", "keep_alive",
}

// mistakes returns fields that are no field's name but nearly one, and values that a chat is refused for.
func (p Preset) mistakes(name string) (all []string) {
	var caps request.Caps
	llamawire.Wire{}.Describe(&caps)
	known := slices.Collect(maps.Keys(request.NamesOf(ownFields, request.Sampling, caps.ChatFields)))
	slices.Sort(known)
	for _, field := range slices.Sorted(maps.Keys(p)) {
		if meant := nearest.DidYouMean(field, known); meant != "" && !slices.Contains(known, field) {
			all = append(all, fmt.Sprintf("preset %s: no request has a field %s%s", name, field, strings.TrimSuffix(meant, "?")))
		}
	}
	body, bad := jsonbody.Scan([]byte(`{"model":"m","messages":[{"role":"user","content":"m"}]}`))
	if bad == nil {
		body, bad = openai.WithDefaults(body, "", p)
	}
	if bad == nil {
		_, bad = openai.ParseChat(body, caps)
	}
	if bad != nil && p[bad.Param] != nil && bad.Kind == translate.KindInvalid {
		all = append(all, fmt.Sprintf("preset %s: %s", name, strings.TrimRight(bad.Message, ".")))
	}
	return all
}

// severalTimes are arguments of llama-server that are often given more than once.
var severalTimes = []string{
	"--lora", "--lora-scaled", "--control-vector", "--control-vector-scaled", "-ot", "--override-tensor", "--override-kv", "--rpc",
}

// argumentMistakes returns arguments that stand twice, and those that an option sets. layers is the option for layers on GPUs, if it is
// set.
func argumentMistakes(of string, args []string, layers string) (all []string) {
	instead := map[string]string{
		"-c": "context_length", "--ctx-size": "context_length", "-np": "parallel", "--parallel": "parallel",
		"-ngl": layers, "--gpu-layers": layers, "--n-gpu-layers": layers,
	}
	seen := map[string]bool{}
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if option := instead[name]; option != "" {
			all = append(all, fmt.Sprintf("%s: args has %s, which the option %s sets: use that alone", of, name, option))
		}
		isFlag := strings.HasPrefix(name, "-") && strings.Trim(name, "-.0123456789") != ""
		if isFlag && seen[name] && !slices.Contains(severalTimes, name) {
			all = append(all, fmt.Sprintf("%s: args has %s twice: leave one of them", of, name))
		}
		seen[name] = true
	}
	return all
}

// Means returns the model that a name in any form stands for, among models with some keys; empty: none does.
func Means(keys []string, name string) string {
	models := make([]catalog.Model, len(keys))
	for i, key := range keys {
		models[i].Key = key
	}
	slices.SortFunc(models, func(a, b catalog.Model) int { return cmp.Compare(a.Key, b.Key) })
	for spelling := range spellings(name) {
		names := namesOf(spelling)
		if m, err := catalog.Among(models, names[0], names[1:]...); err == nil {
			return m.Key
		}
	}
	return ""
}
