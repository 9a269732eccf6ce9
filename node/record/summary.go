package record

import (
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Summary is what is known of a request when it has ended. It has nothing of what was asked and answered.
type Summary struct {
	ID       string
	Arrived  time.Time
	Duration time.Duration
	Dialect  string // native, v0, openai, responses or anthropic
	Method   string
	Path     string

	Model     string // its key; empty if the request needs none, or names none that there is
	Instance  string // that answered last; empty: none did
	Owner     string // empty: anybody
	Token     string // the id of the token; empty: there was none
	TokenName string // for display

	Streamed bool   // as server-sent events
	Status   int    // of the response; 0: nothing was sent
	Outcome  string // ok; cancelled, by its client; or the kind of the error. One of few words.

	Queue      time.Duration // waiting for others: for a slot, or for room for the model
	Load       time.Duration // waiting for the model's load
	Restore    time.Duration // waiting until the state of its prompt was read
	FirstToken time.Duration // from its arrival to the first token; 0: there was none
	Usage      translate.Usage
	PerToken   time.Duration // the time that an engine took for each token; 0: unknown
	Tools      int           // calls of MCP servers' tools

	Inspected bool // it is among the inspections
}

// The outcomes that aren't errors.
const (
	OutcomeOK        = "ok"
	OutcomeCancelled = "cancelled"
)
