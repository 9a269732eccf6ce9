package resource

import (
	"encoding/json"
	"time"
)

// Event is what all events of GET /api/v1/events have.
type Event struct {
	Type string `json:"type"`
	Time *Time  `json:"time"`
}

// Kind returns the type.
func (e Event) Kind() string { return e.Type }

// EventsStart is the first event.
type EventsStart struct {
	Event

	Resumed bool `json:"resumed"` // the events after the one that Last-Event-ID names follow; false: only new ones
}

// EventsMissed is in place of events that were no longer kept when the reader came to them.
type EventsMissed struct {
	Event

	Number *uint64 `json:"number"` // nil: unknown
}

// ModelLoadEvent is a step of a load.
type ModelLoadEvent struct {
	Event

	Model     string          `json:"model"`
	Instance  string          `json:"instance_id"`
	Progress  *float64        `json:"progress,omitempty"` // 0 to 1
	Seconds   float64         `json:"load_time_seconds,omitempty"`
	Placement string          `json:"placement,omitempty"` // at the end: where the model is, in words; absent: there is no choice
	Error     json.RawMessage `json:"error,omitempty"`     // an error as in other answers
}

// ModelUnloadEvent is a step of an unload.
type ModelUnloadEvent struct {
	Event

	Model    string `json:"model"`
	Instance string `json:"instance_id"`
	Reason   string `json:"reason"`
}

// ModelsChanged says that a model, or else any, was added, deleted or changed, or is loaded with other settings.
type ModelsChanged struct {
	Event

	Model string `json:"model,omitempty"`
}

// RequestEvent is the begin or the end of a request to a model.
type RequestEvent struct {
	Event

	Request Request `json:"request"`
}

// LogEvent is a record of the log.
type LogEvent struct {
	Event

	Record json.RawMessage `json:"record"` // a LogRecord
}

// Health is the response to GET /api/v1/health.
type Health struct {
	Status  string    `json:"status"`            // ok, degraded: some requests can't be served, or failing: none can
	Reasons []string  `json:"reasons,omitempty"` // codes, each once
	Details []Trouble `json:"details,omitempty"` // for administrators alone
}

// Trouble is a reason in full.
type Trouble struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Logs is the response to GET /api/v1/logs.
type Logs struct {
	Records []LogRecord `json:"records"` // oldest first
}

// LogRecord is an entry of the server's log.
type LogRecord struct {
	ID      string          `json:"id"` // names the place after it
	Time    *Time           `json:"time"`
	Level   string          `json:"level"` // debug, info, warn or error
	Logger  string          `json:"logger"`
	Message string          `json:"message"`
	Fields  json.RawMessage `json:"fields"` // an object
}

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
