package node

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// The bounds of what is kept of requests that are inspected, in bytes. Beyond them only sizes are known.
const (
	mostOfText       = 16 << 20 // of one body: one with images is whole
	mostOfInspection = 32 << 20 // of one request with its answers
	mostInspected    = 64 << 20 // of all; the oldest request is dropped first
	// mostUpstream is how many upstream requests of one are kept.
	mostUpstream = 64
	// MaxInspect is the highest number of requests that can be kept.
	MaxInspect = 10_000
)

// inspections are the requests that are kept, oldest first. They are in memory alone.
type inspections struct {
	mu    sync.Mutex
	all   []*Inspection
	bytes int64
}

// Inspection is a request as it was received, sent to engines, and answered. All methods may be called on nil, which keeps nothing.
type Inspection struct {
	of *inspections

	// These are guarded by of.mu.
	kept     bool // it is among those of the node
	bytes    int64
	summary  Summary
	ended    bool
	header   http.Header
	body     text
	upstream []*UpstreamInspection
	status   int
	given    http.Header
	answer   text
}

// UpstreamInspection is one request to an engine. Its methods may be called on nil, too.
type UpstreamInspection struct {
	in *Inspection

	instance, path string
	began          time.Time
	took           time.Duration
	status         int
	asked, answer  text
}

// text is the beginning of a text, and the size of the whole.
type text struct {
	kept []byte
	size int64
}

// Inspect begins to keep a request of which so much is known. nil: the settings keep none.
func (n *Node) Inspect(s Summary, header http.Header) *Inspection {
	number := n.settings.Load().Inspect
	if number == 0 {
		return nil
	}
	i := &n.inspections
	in := &Inspection{of: i, kept: true, summary: s, header: header, bytes: headerSize(header)}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all, i.bytes = append(i.all, in), i.bytes+in.bytes
	i.trim(number)
	return in
}

func headerSize(h http.Header) (bytes int64) {
	for name, values := range h {
		bytes += int64(len(name))
		for _, v := range values {
			bytes += int64(len(v))
		}
	}
	return bytes
}

// trim drops the oldest requests that are too many, or too large together. The caller holds i.mu.
func (i *inspections) trim(number int) {
	drop := 0
	for ; drop < len(i.all) && (len(i.all)-drop > number || i.bytes > mostInspected); drop++ {
		in := i.all[drop]
		in.kept = false
		i.bytes -= in.bytes
	}
	i.all = slices.Delete(i.all, 0, drop)
}

// forget drops the requests that new settings don't keep.
func (i *inspections) forget(number int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.trim(number)
}

// add adds to a text of the request. The caller holds the lock.
func (in *Inspection) add(to *text, p []byte) {
	to.size += int64(len(p))
	room := min(mostOfText-int64(len(to.kept)), mostOfInspection-in.bytes, int64(len(p)))
	if room <= 0 || !in.kept {
		return
	}
	to.kept = append(to.kept, p[:room]...)
	in.bytes += room
	if in.of.bytes += room; in.of.bytes > mostInspected {
		in.of.trim(len(in.of.all))
	}
}

// Asked keeps the body of the request.
func (in *Inspection) Asked(body []byte) {
	if in == nil {
		return
	}
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.add(&in.body, body)
}

// Begun keeps the header of the response.
func (in *Inspection) Begun(status int, header http.Header) {
	if in == nil {
		return
	}
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.status, in.given = status, header
}

// Answered keeps a part of what the client was sent.
func (in *Inspection) Answered(p []byte) {
	if in == nil {
		return
	}
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.add(&in.answer, p)
}

// Ended completes the request.
func (in *Inspection) Ended(s *Summary) {
	if in == nil {
		return
	}
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	in.summary, in.ended = *s, true
}

// Upstream keeps a request to an engine. It has to be ended.
func (in *Inspection) Upstream(instance, path string, body [][]byte) *UpstreamInspection {
	if in == nil {
		return nil
	}
	in.of.mu.Lock()
	defer in.of.mu.Unlock()
	if len(in.upstream) == mostUpstream {
		return nil
	}
	u := &UpstreamInspection{in: in, instance: instance, path: path, began: time.Now()}
	in.upstream = append(in.upstream, u)
	for _, piece := range body {
		in.add(&u.asked, piece)
	}
	return u
}

// Status keeps the status of the engine's response.
func (u *UpstreamInspection) Status(status int) {
	if u == nil {
		return
	}
	u.in.of.mu.Lock()
	defer u.in.of.mu.Unlock()
	u.status = status
}

// Answered keeps a part of the engine's answer.
func (u *UpstreamInspection) Answered(p []byte) {
	if u == nil {
		return
	}
	u.in.of.mu.Lock()
	defer u.in.of.mu.Unlock()
	u.in.add(&u.answer, p)
}

// End ends the exchange with the engine.
func (u *UpstreamInspection) End() {
	if u == nil {
		return
	}
	u.in.of.mu.Lock()
	defer u.in.of.mu.Unlock()
	u.took = time.Since(u.began)
}
