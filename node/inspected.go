package node

import (
	"net/http"
	"slices"
	"time"
)

// Text is the beginning of a text, and the size of the whole in bytes.
type Text struct {
	Kept []byte // not to be changed
	Size int64
}

// Inspected is a copy of a request that is kept.
type Inspected struct {
	Summary Summary
	Ended   bool // otherwise it is still being answered

	Header   http.Header // of the request, without secrets
	Body     Text
	Upstream []InspectedUpstream // in the order of their beginnings
	Status   int                 // of the response; 0: nothing was sent yet
	Given    http.Header         // of the response
	Answer   Text
}

// InspectedUpstream is a copy of a request to an engine.
type InspectedUpstream struct {
	Instance string
	Path     string
	Began    time.Time
	Took     time.Duration // 0: it hasn't ended
	Status   int           // 0: there was no response
	Asked    Text
	Answer   Text
}

// Inspected returns the summaries of the requests that are kept, newest first. Those of requests that are still being answered have no
// outcome.
func (n *Node) Inspected() []Summary {
	i := &n.inspections
	i.mu.Lock()
	defer i.mu.Unlock()
	all := make([]Summary, 0, len(i.all))
	for _, in := range slices.Backward(i.all) {
		all = append(all, in.summary)
	}
	return all
}

// InspectedRequest returns the newest request with an id. ok is false if none is kept.
func (n *Node) InspectedRequest(id string) (_ Inspected, ok bool) {
	i := &n.inspections
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, in := range slices.Backward(i.all) {
		if in.summary.ID == id {
			return in.copy(), true
		}
	}
	return Inspected{}, false
}

// copy shares the bytes with the text, which only grows.
func (t text) copy() Text { return Text{slices.Clip(t.kept), t.size} }

// copy returns a copy. The caller holds the lock, so it takes no time, however large the request is.
func (in *Inspection) copy() Inspected {
	c := Inspected{
		Summary: in.summary, Ended: in.ended, Header: in.header, Body: in.body.copy(), Status: in.status, Given: in.given, Answer: in.answer.copy(),
	}
	for _, u := range in.upstream {
		c.Upstream = append(c.Upstream, InspectedUpstream{u.instance, u.path, u.began, u.took, u.status, u.asked.copy(), u.answer.copy()})
	}
	return c
}
