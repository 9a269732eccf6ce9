// Package resource defines the JSON of models and tokens in the native API, which the server writes and the commands read.
// Fields follow the API's specification unless a comment says otherwise.
package resource

import "encoding/json"

// Models is the response to GET /api/v1/models.
type Models struct {
	Models []Model  `json:"models"`
	Broken []Broken `json:"broken,omitempty"` // beyond the specification
}

// Model is a usable model. Unknown values are null.
type Model struct {
	Type             string        `json:"type"`
	Publisher        string        `json:"publisher"`
	Key              string        `json:"key"`
	DisplayName      string        `json:"display_name"`
	Architecture     string        `json:"architecture,omitempty"`
	Quantization     *Quantization `json:"quantization"`
	SizeBytes        int64         `json:"size_bytes"`
	Params           *string       `json:"params_string"`
	Instances        []Instance    `json:"loaded_instances"`
	MaxContextLength int           `json:"max_context_length"`
	ContextLength    int           `json:"context_length,omitempty"` // beyond the specification: what a request gets now; 0: unknown
	Format           Word          `json:"format"`
	Aliases          []string      `json:"aliases,omitempty"` // beyond the specification
	Places           []Place       `json:"places,omitempty"`  // beyond the specification: the remotes that have it
	// Via: beyond the specification: ids of the servers that every request to it passes
	Via          []string      `json:"via,omitempty"`
	Capabilities *Capabilities `json:"capabilities,omitempty"`
	// EngineProblem: beyond the specification: why its engine can't load it, and what to do
	EngineProblem string `json:"engine_problem,omitempty"`
	*Description
}

// Word is a text that is null if it is empty.
type Word string

// MarshalJSON writes null for an empty word.
func (w Word) MarshalJSON() ([]byte, error) {
	if w == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(w))
}

// Place is a remote that has a model.
type Place struct {
	Remote    string `json:"remote"`
	Instance  string `json:"instance_id"` // the name of the model there alone
	Loaded    bool   `json:"loaded"`      // as far as the remote tells
	Reachable bool   `json:"reachable"`
}

// Description is null unless a language model's author wrote one.
type Description struct {
	Description *string `json:"description"`
}

// Quantization describes how a model's weights are stored.
type Quantization struct {
	Name *string  `json:"name"`
	Bits *float64 `json:"bits_per_weight"`
}

// Capabilities lists what a language model can do besides text.
type Capabilities struct {
	Vision    bool       `json:"vision"`
	ToolUse   bool       `json:"trained_for_tool_use"`
	Reasoning *Reasoning `json:"reasoning,omitempty"` // absent if the model offers no choice
}

// Reasoning lists the values of the native chat's field "reasoning".
type Reasoning struct {
	Options []string `json:"allowed_options"`
	Default *string  `json:"default"`
}

// Instance is a loaded instance of a model.
type Instance struct {
	ID     string     `json:"id"`
	Config LoadConfig `json:"config"`
}

// LoadConfig is the configuration that an instance was loaded with. Fields that don't apply to a model are absent.
type LoadConfig struct {
	ContextLength  int   `json:"context_length"`
	Parallel       *int  `json:"parallel,omitempty"` // beyond the specification: only if the load chose it
	BatchSize      *int  `json:"eval_batch_size,omitempty"`
	FlashAttention *bool `json:"flash_attention,omitempty"`
	Experts        *int  `json:"num_experts,omitempty"`
	OffloadKV      *bool `json:"offload_kv_cache_to_gpu,omitempty"`
}

// Broken is a model whose file can't be used.
type Broken struct {
	Key   string `json:"key"`
	Path  string `json:"path"` // relative to the models folder that it is in, if any
	Error string `json:"error"`
}

// Pinned is the response to POST /api/v1/models/pin.
type Pinned struct {
	Model     string   `json:"model"`
	Instances []string `json:"instance_ids"`
	Pinned    bool     `json:"pinned"`
}

// Loaded is the response to POST /api/v1/models/load.
type Loaded struct {
	Type     string      `json:"type"`
	Instance string      `json:"instance_id"`
	Seconds  float64     `json:"load_time_seconds"`
	Status   string      `json:"status"`
	Config   *LoadConfig `json:"load_config,omitempty"` // if the request asks for it
	// Placement says where the model is if a part of it, or all, is on the processor although there is a GPU.
	Placement string `json:"placement,omitempty"`
}
