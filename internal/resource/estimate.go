package resource

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
