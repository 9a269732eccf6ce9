package record

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/lmcaddy/lmcaddy/internal/ring"
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
