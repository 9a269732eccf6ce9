// Package resource is what the native API tells of models and tokens, as JSON: the server writes it, and the commands read
// it. Fields are as in the API's specification, but where a comment says otherwise.
package resource

// Models is the answer to GET /api/v1/models.
type Models struct {
	Models []Model  `json:"models"`
	Broken []Broken `json:"broken,omitempty"` // beyond the specification
}

// Model is one that can be used. What isn't known is null.
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
	Format           string        `json:"format"`
	Aliases          []string      `json:"aliases,omitempty"` // beyond the specification
	Capabilities     *Capabilities `json:"capabilities,omitempty"`
	*Description
}

// Description is what language models alone have: null where nobody wrote one.
type Description struct {
	Description *string `json:"description"`
}

// Quantization is how a model's weights are stored.
type Quantization struct {
	Name *string  `json:"name"`
	Bits *float64 `json:"bits_per_weight"`
}

// Capabilities is what a language model can do besides text.
type Capabilities struct {
	Vision    bool       `json:"vision"`
	ToolUse   bool       `json:"trained_for_tool_use"`
	Reasoning *Reasoning `json:"reasoning,omitempty"` // absent where the model offers no choice
}

// Reasoning is what the native chat's field "reasoning" may be.
type Reasoning struct {
	Options []string `json:"allowed_options"`
	Default *string  `json:"default"`
}

// Instance is a loaded one of a model.
type Instance struct {
	ID     string     `json:"id"`
	Config LoadConfig `json:"config"`
}

// LoadConfig is what an instance was loaded with. What doesn't apply to a model is absent.
type LoadConfig struct {
	ContextLength  int   `json:"context_length"`
	BatchSize      *int  `json:"eval_batch_size,omitempty"`
	FlashAttention *bool `json:"flash_attention,omitempty"`
	Experts        *int  `json:"num_experts,omitempty"`
	OffloadKV      *bool `json:"offload_kv_cache_to_gpu,omitempty"`
}

// Broken is a model whose file can't be used.
type Broken struct {
	Key   string `json:"key"`
	Path  string `json:"path"` // below the folder of models where it is below one
	Error string `json:"error"`
}

// Loaded is the answer to POST /api/v1/models/load.
type Loaded struct {
	Type     string      `json:"type"`
	Instance string      `json:"instance_id"`
	Seconds  float64     `json:"load_time_seconds"`
	Status   string      `json:"status"`
	Config   *LoadConfig `json:"load_config,omitempty"` // where the request asks for it
}
