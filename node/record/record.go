// Package record remembers what a server has done, apart from its log: the requests to its models, the events that clients follow, the
// figures of its metrics, the tokens that were used, and whole requests where the settings want that. Of what was asked and answered,
// only the last have anything. All of it is in memory, except the usage, which is saved to the store.
//
// The package starts no goroutines. All methods may be called from any goroutine.
package record

import (
	"time"

	"github.com/lmcaddy/lmcaddy/internal/ring"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

// Record is what one server remembers.
type Record struct {
	Began       time.Time // when the server was opened
	Events      *Events
	Requests    *Requests
	Inspections *Inspections
	Traffic     *TrafficCounter
	Usage       *Usage
}

// New returns an empty record. The usage is saved to the store in use, which may be nil at first.
func New(inUse func() *store.Store) *Record {
	events := NewEvents()
	return &Record{
		Began: time.Now(), Events: events, Inspections: new(Inspections), Traffic: NewTrafficCounter(),
		Requests: &Requests{
			events: events, inFlight: map[*InFlight]struct{}{}, ended: ring.New[*Summary](mostEndedRequests, mostEndedBytes),
		},
		Usage: &Usage{
			store: inUse, pending: map[store.HourKey]store.UsageCount{}, total: map[totalKey]store.UsageCount{},
			saving: make(chan struct{}, 1),
		},
	}
}

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
