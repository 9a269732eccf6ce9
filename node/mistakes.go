package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	llamawire "github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

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
