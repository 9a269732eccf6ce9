// Package record remembers what a server has done, apart from its log: the requests to its models, the events that clients follow, the
// figures of its metrics, the tokens that were used, and whole requests where the settings want that. Of what was asked and answered,
// only the last have anything. All of it is in memory, except the usage, which is saved to the store.
//
// The package starts no goroutines. All methods may be called from any goroutine.
package record

import (
	"cmp"
	"math"
	"slices"
	"sync"
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

// The bounds of what is remembered of requests to models that have ended.
const (
	mostEndedRequests = 500
	mostEndedBytes    = 4 << 20
)

// Requests remembers requests to models: those in progress, and the newest that have ended. It has nothing of what was asked and answered.
type Requests struct {
	events *Events

	mu       sync.Mutex
	inFlight map[*InFlight]struct{}
	ended    *ring.Ring[*Summary]
}

// InFlight is a request to a model that is in progress. It has its events, so that they take no memory of their own.
type InFlight struct {
	begun      Summary
	start, end Event
}

// Begin notes that a request to a model has begun. It copies what is known of it. End has to be called.
func (r *Requests) Begin(s *Summary) *InFlight {
	u := &InFlight{begun: *s}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight[u] = struct{}{}
	u.start = Event{Type: EventRequestStart, Model: s.Model, FullKey: s.Model, Request: &u.begun}
	r.events.add(&u.start, sizeOfSummary(s))
	return u
}

// End notes that a request has ended. u is nil if it was refused before it began. The summary must not change any more.
func (r *Requests) End(u *InFlight, s *Summary) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inFlight, u)
	r.ended.Add(s, sizeOfSummary(s))
	if u == nil {
		u = new(InFlight)
	}
	u.end = Event{Type: EventRequestEnd, Model: s.Model, FullKey: s.Model, Request: s}
	r.events.add(&u.end, sizeOfSummary(s))
}

// sizeOfSummary is about how much memory a summary takes, in bytes. Its other texts are a few words, or belong to tokens.
func sizeOfSummary(s *Summary) int {
	return 500 + len(s.ID) + len(s.Path) + len(s.Model) + len(s.TokenName)
}

// List returns the requests in progress, which have no outcome yet, and the newest that have ended, the last to arrive first.
func (r *Requests) List() []*Summary {
	r.mu.Lock()
	all, _, _ := r.ended.From(0, math.MaxInt)
	for u := range r.inFlight {
		all = append(all, &u.begun)
	}
	r.mu.Unlock()
	slices.SortStableFunc(all, func(a, b *Summary) int { return cmp.Or(b.Arrived.Compare(a.Arrived), cmp.Compare(a.ID, b.ID)) })
	return all
}
