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
		Began: time.Now(), Events: events, Requests: &Requests{events: events, inFlight: map[*InFlight]struct{}{}, ended: ring.New[*Summary](mostEndedRequests, mostEndedBytes)}, Inspections: new(Inspections), Traffic: NewTrafficCounter(),
		Usage: &Usage{
			store: inUse, pending: map[store.HourKey]store.UsageCount{}, total: map[totalKey]store.UsageCount{}, saving: make(chan struct{}, 1),
		},
	}
}
