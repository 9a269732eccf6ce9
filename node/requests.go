package node

import (
	"cmp"
	"slices"
	"sync"

	"github.com/lmcaddy/lmcaddy/internal/ring"
)

// The bounds of what is remembered of requests to models that have ended.
const (
	mostEndedRequests = 500
	mostEndedBytes    = 4 << 20
)

// requests remembers requests to models: those in progress, and the newest that have ended. It has nothing of what was asked and answered.
type requests struct {
	mu       sync.Mutex
	underway map[*Underway]struct{}
	ended    *ring.Ring[*Summary]
}

// Underway is a request to a model that is in progress. It has its events, so that they take no memory of their own.
type Underway struct {
	begun      Summary
	start, end Event
}

func newRequests() *requests {
	return &requests{underway: map[*Underway]struct{}{}, ended: ring.New[*Summary](mostEndedRequests, mostEndedBytes)}
}

// BeginRequest notes that a request to a model has begun. It copies what is known of it. EndRequest has to be called.
func (n *Node) BeginRequest(s *Summary) *Underway {
	u := &Underway{begun: *s}
	r := n.requests
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underway[u] = struct{}{}
	u.start = Event{Type: EventRequestStart, Model: s.Model, FullKey: s.Model, Request: &u.begun}
	n.events.add(&u.start, sizeOfSummary(s))
	return u
}

// EndRequest notes that a request to a model has ended. u is nil if it never began, since it was refused. The summary must not change any
// more.
func (n *Node) EndRequest(u *Underway, s *Summary) {
	r := n.requests
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.underway, u)
	r.ended.Add(s, sizeOfSummary(s))
	if u == nil {
		u = new(Underway)
	}
	u.end = Event{Type: EventRequestEnd, Model: s.Model, FullKey: s.Model, Request: s}
	n.events.add(&u.end, sizeOfSummary(s))
}

// sizeOfSummary is about how much memory a summary takes, in bytes. Its other texts are a few words, or belong to tokens.
func sizeOfSummary(s *Summary) int {
	return 500 + len(s.ID) + len(s.Path) + len(s.Model) + len(s.TokenName)
}

// Requests returns what is known of the requests to models that are in progress, which have no outcome yet, and of the newest that have
// ended, the last to arrive first.
func (n *Node) Requests() []*Summary {
	r := n.requests
	r.mu.Lock()
	all, _, _ := r.ended.From(0)
	for u := range r.underway {
		all = append(all, &u.begun)
	}
	r.mu.Unlock()
	slices.SortStableFunc(all, func(a, b *Summary) int { return cmp.Or(b.Arrived.Compare(a.Arrived), cmp.Compare(a.ID, b.ID)) })
	return all
}
