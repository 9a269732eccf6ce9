package resource

import "time"

// Requests is the response to GET /api/v1/requests.
type Requests struct {
	Requests []Request `json:"requests"` // newest first
}

// Request is what is known of a request. Figures that don't apply are absent; durations are in seconds.
type Request struct {
	ID           string    `json:"id"`
	ArrivedAt    time.Time `json:"arrived_at"`
	Seconds      float64   `json:"duration_seconds,omitempty"` // absent: it is still being answered
	Outcome      string    `json:"outcome,omitempty"`          // ok, cancelled, or the kind of the error
	Method       string    `json:"method"`
	Path         string    `json:"path"`
	Dialect      string    `json:"dialect"`
	Status       int       `json:"status,omitempty"`
	Stream       bool      `json:"stream,omitempty"`
	Model        string    `json:"model,omitempty"`
	Instance     string    `json:"instance,omitempty"`
	Owner        string    `json:"owner,omitempty"`
	TokenName    string    `json:"token_name,omitempty"`
	TokensIn     int       `json:"input_tokens,omitempty"`
	TokensCached int       `json:"cached_tokens,omitempty"`
	TokensOut    int       `json:"output_tokens,omitempty"`
	ToolCalls    int       `json:"tool_calls,omitempty"`
	Queue        float64   `json:"queue_seconds,omitempty"`
	Load         float64   `json:"load_seconds,omitempty"`
	Restore      float64   `json:"restore_seconds,omitempty"`
	FirstToken   float64   `json:"time_to_first_token_seconds,omitempty"`
	PerToken     float64   `json:"time_per_output_token_seconds,omitempty"`
	Inspected    bool      `json:"inspected,omitempty"` // GET /api/v1/requests/{id} has it whole
}

// WholeRequest is the response to GET /api/v1/requests/{id}.
type WholeRequest struct {
	Request

	Client   Message            `json:"request"`
	Upstream []UpstreamExchange `json:"upstream"` // requests to engines, in the order of their beginnings
	Response Message            `json:"response"`
}

// Message is a request or a response. Secrets in it are masked.
type Message struct {
	Header    map[string][]string `json:"headers,omitempty"`
	Body      string              `json:"body"`       // or its beginning
	BodyBytes int64               `json:"body_bytes"` // of the whole
}

// UpstreamExchange is a request to an engine, with its answer.
type UpstreamExchange struct {
	Instance string    `json:"instance"`
	Path     string    `json:"path"`
	BeganAt  time.Time `json:"began_at"`
	Seconds  float64   `json:"duration_seconds,omitempty"`
	Status   int       `json:"status,omitempty"`
	Request  Message   `json:"request"`
	Response Message   `json:"response"`
}
