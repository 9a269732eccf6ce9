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
	Audio     bool       `json:"audio,omitempty"`
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

// LoadEstimate is the response to POST /api/v1/models/load with estimate_only. It is beyond the specification.
type LoadEstimate struct {
	Type   string         `json:"type"`
	Model  string         `json:"model"`
	Status string         `json:"status"` // "estimated"
	Config LoadConfig     `json:"load_config"`
	Slots  int            `json:"parallel"` // concurrent requests
	Memory MemoryEstimate `json:"memory"`

	Budget *int64 `json:"memory_budget_bytes"` // of all models together in the machine's memory; null: unlimited
	Free   *int64 `json:"free_bytes"`          // of the budget; null: unlimited

	// Placement: where it would be, in words; absent: there is no choice, or it can't be loaded
	Placement string           `json:"placement,omitempty"`
	Devices   []EstimateDevice `json:"devices"` // the machine's memory first, then GPUs with memory of their own

	Fits   bool   `json:"fits"`             // it can be loaded, at once or after what follows
	Reason string `json:"reason,omitempty"` // why it can't
	// Smaller is set if other models in use leave no room for all of it.
	Smaller *SmallerLoad `json:"smaller,omitempty"`
	Evicts  []string     `json:"would_unload"`                  // instances that would be unloaded
	Shrinks []string     `json:"would_shrink"`                  // instances that would be restarted with fewer slots or a smaller cache
	Others  int          `json:"would_unload_others,omitempty"` // number of instances of models that the token may not use
	Waits   bool         `json:"would_wait"`                    // until requests in progress have ended
}

// EstimateDevice is what a load would take of a device.
type EstimateDevice struct {
	Name   string `json:"name"`
	Needed int64  `json:"needed_bytes"` // 0 if it can't be loaded
	Budget int64  `json:"budget_bytes"` // of all models together, less what other programs hold; 0: unlimited
	Taken  int64  `json:"taken_bytes"`  // of it, by models
}

// MemoryEstimate is the memory that a load takes on all devices of this machine together, in bytes.
type MemoryEstimate struct {
	Total       int64  `json:"total_bytes"`
	Weights     int64  `json:"weights_bytes"`
	KVCache     int64  `json:"kv_cache_bytes"`
	Compute     int64  `json:"compute_bytes"`
	Projector   int64  `json:"projector_bytes"`
	Draft       int64  `json:"draft_model_bytes"`
	PromptCache int64  `json:"prompt_cache_bytes"` // with the context checkpoints; it is filled gradually
	Engine      int64  `json:"engine_bytes"`       // the rest
	Confidence  string `json:"confidence"`         // "measured" by an earlier load of the same kind, "high" or "low"
}

// SmallerLoad is the size in which a model is loaded beside others.
type SmallerLoad struct {
	Slots         int   `json:"parallel"`
	ContextLength int   `json:"context_length"`
	Memory        int64 `json:"total_bytes"`
}

// ModelDetails is the response to GET /api/v1/models/{key}, which is beyond the specification: the model as it is listed, and more.
type ModelDetails struct {
	Model
	Parameters   *int64        `json:"parameters"`
	Experts      *Experts      `json:"experts,omitempty"` // of a mixture of experts
	Vocabulary   *int          `json:"vocabulary_size,omitempty"`
	Embeddings   bool          `json:"embeddings"` // it makes embeddings
	Reranker     bool          `json:"reranker"`   // it ranks documents
	Files        []ModelFile   `json:"files"`
	Companions   []Companion   `json:"companions,omitempty"` // files beside it that aren't loaded with it, unless a load asks for one
	ChatTemplate *string       `json:"chat_template"`
	License      *License      `json:"license"`
	Author       *string       `json:"author"`
	QuantizedBy  *string       `json:"quantized_by"`
	Source       *string       `json:"source_url"`     // where it was downloaded, or else its publisher's page
	BaseModel    *string       `json:"base_model_url"` // what it was made from
	Revision     *string       `json:"revision"`       // that was downloaded
	Engine       string        `json:"engine"`
	Settings     ModelSettings `json:"settings"`
	Load         *LoadEstimate `json:"load"` // what a load now would take and do; null: none is possible
	LoadError    string        `json:"load_error,omitempty"`
}

// Experts is the number of a model's experts, and of those that it uses for each token.
type Experts struct {
	Total int `json:"total"`
	Used  int `json:"used"`
}

// ModelFile is a file of a model.
type ModelFile struct {
	Path      string `json:"path"` // relative to the models folder that it is in, if any
	SizeBytes int64  `json:"size_bytes"`
	Role      string `json:"role"` // "model" or "projector"
}

// Companions is the response to GET /api/v1/models/companions, which is beyond the specification.
type Companions struct {
	Companions []Companion `json:"companions"`
}

// Companion is a file that belongs to models and is none itself, such as a projector or a drafter.
type Companion struct {
	Key       string   `json:"key"` // by which a request names a drafter
	Role      string   `json:"role"`
	Path      string   `json:"path"` // relative to the models folder that it is in, if any
	SizeBytes int64    `json:"size_bytes"`
	Models    []string `json:"models"` // the keys of those that it may belong to
}

// License is what a model's file says of its license.
type License struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// ModelSettings are the settings in force for a model: its own, and the server's where it has none.
type ModelSettings struct {
	Configured    bool     `json:"configured"`     // it has settings of its own
	ContextLength *int     `json:"context_length"` // null: chosen by memory
	Parallel      *int     `json:"parallel"`       // null: chosen by memory
	TTL           float64  `json:"ttl_seconds"`    // of the model when a request loads it; 0: it stays loaded
	Draft         *string  `json:"draft_model"`
	Preload       bool     `json:"preload"`
	Pinned        bool     `json:"pinned"`
	Warm          bool     `json:"warm"`           // states of its conversations are saved
	Args          []string `json:"args,omitempty"` // of its engine; for administrators only
}

// Found is the response to GET /api/v1/models/search, which is beyond the specification.
type Found struct {
	Models []FoundModel `json:"models"`
}

// FoundModel is a model of a hub that can be run on the server.
type FoundModel struct {
	Model        string `json:"model"`      // by which it can be downloaded
	Repository   string `json:"repository"` // publisher/repository on the hub
	URL          string `json:"url"`
	WellKnown    bool   `json:"well_known"` // it is in the server's own list
	Downloads    *int64 `json:"downloads"`  // of the last month; null: unknown
	Likes        *int64 `json:"likes"`      // null: unknown
	Updated      *Time  `json:"updated_at"`
	Gated        bool   `json:"gated"` // its publisher lets only some users download it
	Format       string `json:"format"`
	Quantization string `json:"quantization"` // that would be downloaded; empty: unknown
	SizeBytes    *int64 `json:"size_bytes"`   // of what would be downloaded; null: unknown
	Fits         *bool  `json:"fits_memory"`  // of the server; null: unknown
	Downloaded   bool   `json:"downloaded"`
}

// Preview is the response to POST /api/v1/models/download with estimate_only, which is beyond the specification.
type Preview struct {
	Job          string        `json:"job_id,omitempty"` // of a download of the same files
	Status       string        `json:"status"`           // "estimated", "already_downloaded", or that of the job
	Model        string        `json:"model"`            // the key that it will have; @ and the quantization are added if there are several
	Repository   string        `json:"repository"`
	URL          string        `json:"url,omitempty"`
	Quantization string        `json:"quantization,omitempty"`
	Files        []PreviewFile `json:"files"`
	TotalBytes   int64         `json:"total_size_bytes"`
	LeftBytes    int64         `json:"left_bytes"`      // that are still to be fetched
	FreeBytes    *int64        `json:"disk_free_bytes"` // null: unknown
	OtherBytes   int64         `json:"other_downloads_bytes"`
	FitsDisk     bool          `json:"fits_disk"`
}

// PreviewFile is a file to download.
type PreviewFile struct {
	Path      string `json:"path"` // below the models folder
	SizeBytes int64  `json:"size_bytes"`
}

// Offer is the response to GET /api/v1/models/variants.
type Offer struct {
	// Model: by which it can be downloaded, with @ and a quantization, or with the field "quantization" if it is a URL
	Model      string    `json:"model"`
	Repository string    `json:"repository"`
	URL        string    `json:"url"`
	Variants   []Variant `json:"variants"` // best first
}

// Variant is one of the models of a repository.
type Variant struct {
	Quantization string `json:"quantization"` // empty: it has no name
	Format       string `json:"format"`
	Bits         int    `json:"bits,omitempty"` // nominal, of a weight
	SizeBytes    int64  `json:"size_bytes"`
	FitsMemory   bool   `json:"fits_memory"`
	FitsDisk     bool   `json:"fits_disk"`
	Downloaded   bool   `json:"downloaded"`
	Recommended  bool   `json:"recommended"`
}
