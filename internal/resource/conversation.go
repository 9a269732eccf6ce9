package resource

import (
	"encoding/json"
	"time"
)

// The dialects of conversations.
const (
	DialectNative    = "native"
	DialectResponses = "responses"
)

// Conversations is the response to GET /api/v1/conversations.
type Conversations struct {
	Conversations []Conversation `json:"conversations"`
	Next          *string        `json:"next_cursor"` // null: these are the last ones
}

// Conversation is a stored conversation, with all of its branches. Its model and its status are those of its newest response.
type Conversation struct {
	ID      string `json:"id"` // that of its first response
	Title   string `json:"title"`
	Pinned  bool   `json:"pinned"`
	Dialect string `json:"dialect"`
	Model   string `json:"model"`
	Status  string `json:"status"`
	Turns   int    `json:"turns"`            // on the way to its newest response
	Last    string `json:"last_response_id"` // the newest response, which a request continues
	Owner   string `json:"owner"`            // a token's id, or a user of another authentication; empty: anybody
	Created *Time  `json:"created_at"`
	Updated *Time  `json:"updated_at"`

	// Responses are those on the way to the newest, or those of all branches, unless the request doesn't want them.
	Responses []Response `json:"responses,omitempty"`
}

// Response is a turn of a conversation, as GET /api/v1/responses/{id} returns it.
type Response struct {
	ID       string            `json:"response_id"`
	Previous string            `json:"previous_response_id,omitempty"`
	Model    string            `json:"model"`
	Status   string            `json:"status"`
	Created  time.Time         `json:"created_at"`
	System   *string           `json:"system_prompt,omitempty"`
	Input    []json.RawMessage `json:"input"`
	Output   []json.RawMessage `json:"output"`
	Usage    ResponseUsage     `json:"usage"`
}

// ResponseUsage has the tokens of a response.
type ResponseUsage struct {
	Input     int `json:"input_tokens"`
	Cached    int `json:"cached_input_tokens"` // of Input, those that the engine had cached
	Output    int `json:"output_tokens"`
	Reasoning int `json:"reasoning_output_tokens"`

	// These are absent where they aren't known.
	PerSecond     float64 `json:"tokens_per_second,omitempty"`
	FirstToken    float64 `json:"time_to_first_token_seconds,omitempty"`
	ContextLength int     `json:"context_length,omitempty"` // of the instance, in tokens
}

// Item is an item of the input or the output of a response, as far as people are shown it. Its type determines which fields are set.
type Item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`     // of a message of the input; empty: the user
	Content   string          `json:"content"`  // of message, reasoning, summary and tool_result
	DataURL   string          `json:"data_url"` // of image and audio
	Tool      string          `json:"tool"`     // of tool_call
	Arguments json.RawMessage `json:"arguments"`
	Output    string          `json:"output"` // of tool_call: JSON, the content array of the result
	Reason    string          `json:"reason"` // of invalid_tool_call
	Metadata  struct {
		Tool      string          `json:"tool_name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"metadata"`
}

// DeletedConversations is the response to DELETE /api/v1/conversations, and to that of a single one.
type DeletedConversations struct {
	Deleted int `json:"deleted"`
}

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
