package config

import (
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// Models are the settings of single models, by key or another name.
type Models map[string]*Model

// Key returns a model's name in its normal form.
func (Models) Key(name string) (string, error) { return strings.ToLower(name), nil }

// Model is the settings of one model.
type Model struct {
	// Other names of the model. A * stands for any characters but a slash. Keys go before aliases, and aliases before patterns, of which
	// the longest that fits counts.
	Aliases []string `json:"aliases,omitempty" word:"alias" args:"<name...>"`

	// How many tokens one request gets, rounded up to a multiple of 256. Default: the model's maximum, but at most 32768, and no more than
	// fits.
	ContextLength int `json:"context_length,omitempty" args:"<tokens>" min:"1"`

	// How many requests an instance answers at a time. Default: the engine's setting.
	Parallel int `json:"parallel,omitempty" args:"<n>" min:"1"`

	// The model that drafts for this one (speculative decoding), in the same engine: one with the same vocabulary, or a drafter. Or how it
	// drafts for itself: mtp, by its layers that predict several tokens, or by what its text repeats, such as ngram-mod or ngram-simple.
	// Default: mtp if the model has such layers, the engine can use them and they fit; off turns that off.
	DraftModel string `json:"draft_model,omitempty" args:"<key>|mtp|ngram-<kind>|off"`

	// The preset of requests that name none, in every API. Default: none.
	Preset string `json:"preset,omitempty" args:"<name>"`

	// The LoRA adapter, by its key or its file's name, that requests get which name only the model. Others name one as model+adapter.
	// Default: none.
	Lora string `json:"lora,omitempty" args:"<adapter>"`

	// Loads the model at start.
	Preload bool `json:"preload,omitempty"`

	// Never evicts the model to make room for another.
	Pin bool `json:"pin,omitempty"`

	// How long the model may be idle before it is unloaded, however it was loaded; 0: it stays loaded. Default: idle_ttl if it was loaded
	// on first use, else 0.
	TTL *caddy.Duration `json:"ttl,omitempty" args:"<duration>"`

	// Lets the states of its conversations be kept in files. Default: on.
	Warm *bool `json:"warm,omitempty"`

	// The GPUs that the model may be on, by the engine's names, such as CUDA0; or none, for the processor. Default: the one with the most
	// room, or several if one is too small.
	Devices []string `json:"devices,omitempty" args:"<name...>|none"`

	// How many of its layers are on GPUs; 0: none. Default: all, or as many as there is room for.
	GPULayers *int `json:"gpu_layers,omitempty" args:"<n>" min:"0"`

	// Arguments appended to the engine's. Those that place the model on GPUs, such as -ngl, go before devices and gpu_layers.
	Args []string `json:"args,omitempty" args:"<argument...>" secret:"args"`
}

func (m *Model) aliases() []string {
	if m == nil { // null in JSON
		return nil
	}
	return m.Aliases
}
