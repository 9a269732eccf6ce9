package resource

// Warm is the response to GET /api/v1/warm.
type Warm struct {
	States []WarmState `json:"states"`
	Rates  []WarmRates `json:"rates,omitempty"`
}

// WarmState is a saved state of a conversation.
type WarmState struct {
	Model     string `json:"model"`
	Owner     string `json:"owner"` // a token's id, or a user of another authentication; empty: anybody
	Tokens    int    `json:"tokens"`
	SizeBytes int64  `json:"size_bytes"`
	Created   *Time  `json:"created_at"`
	LastUsed  *Time  `json:"last_used_at"`
}

// WarmRates are what saved states of a model's conversations cost on this machine, as measured, and whether they are kept therefore.
type WarmRates struct {
	Model         string  `json:"model"`
	PaysFrom      *int    `json:"pays_from_tokens"`         // null: to process a prompt again is always faster, so none are kept
	PromptRate    float64 `json:"prompt_tokens_per_second"` // that the engine processes
	BytesPerToken float64 `json:"bytes_per_token"`
	RestoreRate   float64 `json:"restore_bytes_per_second"`
}

// WarmCleared is the response to DELETE /api/v1/warm.
type WarmCleared struct {
	Deleted   int   `json:"deleted"`
	SizeBytes int64 `json:"size_bytes"` // that they took together
}
