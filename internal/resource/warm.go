package resource

// Warm is the response to GET /api/v1/warm.
type Warm struct {
	States []WarmState `json:"states"`
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

// WarmCleared is the response to DELETE /api/v1/warm.
type WarmCleared struct {
	Deleted   int   `json:"deleted"`
	SizeBytes int64 `json:"size_bytes"` // that they took together
}
