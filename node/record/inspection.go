package record

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of the requests that are inspected, in bytes. Beyond them only sizes are known.
const (
	mostOfText       = 16 << 20 // of one body: one with images is whole
	mostOfInspection = 32 << 20 // of one request with its answers
	mostInspected    = 64 << 20 // of all; the oldest request is dropped first
	mostUpstream     = 64       // how many upstream requests of one are recorded
	// MaxInspect is the highest number of requests that can be inspected.
	MaxInspect = 10_000
)

// Inspections are requests that are recorded whole, the newest ones, in memory alone.
type Inspections struct {
	most atomic.Int64

	mu    sync.Mutex
	all   []*Inspection // oldest first
	bytes int64
}

// Text is the beginning of a text, and the size of the whole in bytes.
type Text struct {
	Beginning []byte // not to be changed
	Size      int64
}

// Inspected is a request that is recorded whole.
type Inspected struct {
	Summary Summary
	Ended   bool // otherwise it is still being answered

	Header         http.Header // of the request, without secrets
	Body           Text
	Upstream       []InspectedUpstream // in the order of their beginnings
	Status         int                 // of the response; 0: nothing was sent yet
	ResponseHeader http.Header
	Answer         Text
}

// InspectedUpstream is a request to an engine, and the engine's answer.
type InspectedUpstream struct {
	Instance string
	Path     string
	Began    time.Time
	Duration time.Duration // 0: it hasn't ended
	Status   int           // 0: there was no response
	Body     Text
	Answer   Text
}

// Inspection records one request. All methods may be called on nil, which records nothing.
type Inspection struct {
	of *Inspections

	// These are guarded by of.mu.
	isListed bool // otherwise it was dropped for newer ones
	bytes    int64
	request  Inspected
}

// UpstreamInspection records one request to an engine. Its methods may be called on nil, too.
type UpstreamInspection struct {
	in    *Inspection
	index int
}

// SetMost sets how many requests are recorded; 0: none. The oldest of those that are too many are dropped.
func (i *Inspections) SetMost(number int) {
	i.most.Store(int64(number))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.trim(number)
}

// IsOn reports whether requests are recorded.
func (i *Inspections) IsOn() bool { return i.most.Load() > 0 }

// Begin begins to record a request of which so much is known; nil: none are recorded.
func (i *Inspections) Begin(s Summary, header http.Header) *Inspection {
	number := int(i.most.Load())
	if number == 0 {
		return nil
	}
	in := &Inspection{of: i, isListed: true, request: Inspected{Summary: s, Header: header}}
	for name, values := range header {
		in.bytes += int64(len(name))
		for _, v := range values {
			in.bytes += int64(len(v))
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all, i.bytes = append(i.all, in), i.bytes+in.bytes
	i.trim(number)
	return in
}

// trim drops the oldest requests that are too many, or too large together. The caller holds i.mu.
func (i *Inspections) trim(number int) {
	drop := 0
	for ; drop < len(i.all) && (len(i.all)-drop > number || i.bytes > mostInspected); drop++ {
		i.all[drop].isListed = false
		i.bytes -= i.all[drop].bytes
	}
	i.all = slices.Delete(i.all, 0, drop)
}

// List returns the summaries of the recorded requests, newest first. Those that are still being answered have no outcome.
func (i *Inspections) List() []Summary {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := make([]Summary, 0, len(i.all))
	for _, in := range slices.Backward(i.all) {
		all = append(all, in.request.Summary)
	}
	return all
}

// Get returns a copy of the newest request with an id. ok is false if none is recorded.
func (i *Inspections) Get(id string) (_ Inspected, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, in := range slices.Backward(i.all) {
		if in.request.Summary.ID == id {
			found := in.request // shares the bytes of its texts, which only grow
			found.Upstream = slices.Clone(found.Upstream)
			return found, true
		}
	}
	return Inspected{}, false
}

func (in *Inspection) update(change func(r *Inspected)) {
	if in == nil {
		return
	}
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	change(&in.request)
}

// add adds to a text of the request. The caller holds the lock.
func (in *Inspection) add(to *Text, p []byte) {
	to.Size += int64(len(p))
	room := min(mostOfText-int64(len(to.Beginning)), mostOfInspection-in.bytes, int64(len(p)))
	if room <= 0 || !in.isListed {
		return
	}
	to.Beginning = append(to.Beginning, p[:room]...)
	in.bytes += room
	if in.of.bytes += room; in.of.bytes > mostInspected {
		in.of.trim(len(in.of.all))
	}
}

// AddBody records a part of the request's body.
func (in *Inspection) AddBody(p []byte) { in.update(func(r *Inspected) { in.add(&r.Body, p) }) }

// SetResponse records the beginning of the response.
func (in *Inspection) SetResponse(status int, header http.Header) {
	in.update(func(r *Inspected) { r.Status, r.ResponseHeader = status, header })
}

// AddAnswer records a part of the response's body.
func (in *Inspection) AddAnswer(p []byte) { in.update(func(r *Inspected) { in.add(&r.Answer, p) }) }

// End completes the request.
func (in *Inspection) End(s *Summary) {
	in.update(func(r *Inspected) { r.Summary, r.Ended = *s, true })
}

// Upstream begins to record a request to an engine; nil: too many are recorded already.
func (in *Inspection) Upstream(instance, path string, body [][]byte) (u *UpstreamInspection) {
	in.update(func(r *Inspected) {
		if len(r.Upstream) == mostUpstream {
			return
		}
		u = &UpstreamInspection{in, len(r.Upstream)}
		r.Upstream = append(r.Upstream, InspectedUpstream{Instance: instance, Path: path, Began: time.Now()})
		for _, piece := range body {
			in.add(&r.Upstream[u.index].Body, piece)
		}
	})
	return u
}

func (u *UpstreamInspection) update(change func(r *InspectedUpstream)) {
	if u != nil {
		u.in.update(func(r *Inspected) { change(&r.Upstream[u.index]) })
	}
}

// SetStatus records the status of the engine's response.
func (u *UpstreamInspection) SetStatus(status int) {
	u.update(func(r *InspectedUpstream) { r.Status = status })
}

// AddAnswer records a part of the engine's answer.
func (u *UpstreamInspection) AddAnswer(p []byte) {
	u.update(func(r *InspectedUpstream) { u.in.add(&r.Answer, p) })
}

// End records that the exchange with the engine has ended.
func (u *UpstreamInspection) End() {
	u.update(func(r *InspectedUpstream) { r.Duration = time.Since(r.Began) })
}
