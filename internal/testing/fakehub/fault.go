package fakehub

import (
	"strings"
	"time"
)

// Fault is a fault of requests. Zero fields have no effect.
type Fault struct {
	// Path is a part of the paths of the affected requests, such as "/api/", "/resolve/", "/cdn/" or a file's name; empty: all.
	Path string `json:"path,omitempty"`
	// Skip is the number of such requests that succeed first. Times is the number of requests affected after that; 0: all.
	Skip  int `json:"skip,omitempty"`
	Times int `json:"times,omitempty"`

	// Status is the status of the response, which has Header.
	Status int               `json:"status,omitempty"`
	Header map[string]string `json:"header,omitempty"` // set on every response
	// Redirect is where the request is redirected: a URL without the path, or with it if it ends in "*".
	Redirect string `json:"redirect,omitempty"`
	// Delay is the delay of the response.
	Delay time.Duration `json:"delay,omitempty"`

	// Cut breaks the connection after this many bytes of the body; CutAtOnce before the first byte.
	Cut       int64 `json:"cut,omitempty"`
	CutAtOnce bool  `json:"cut_at_once,omitempty"`
	// Stall stops sending after this many bytes, until the client disconnects or Release is called; StallAtOnce before the first.
	Stall       int64 `json:"stall,omitempty"`
	StallAtOnce bool  `json:"stall_at_once,omitempty"`
	// NoRanges ignores Range headers.
	NoRanges bool `json:"no_ranges,omitempty"`
	// NoTags omits ETags; OtherTags sends a new ETag with each response; WeakTags sends weak ones.
	NoTags    bool `json:"no_tags,omitempty"`
	OtherTags bool `json:"other_tags,omitempty"`
	WeakTags  bool `json:"weak_tags,omitempty"`
	// Longer is added to every length of the file; Chunked sends no length.
	Longer  int64 `json:"longer,omitempty"`
	Chunked bool  `json:"chunked,omitempty"`
	// Damage flips a bit of the byte at this offset, counted from 1.
	Damage int64 `json:"damage,omitempty"`
	// WrongRange sends bytes from the start, but with the requested Content-Range.
	WrongRange bool `json:"wrong_range,omitempty"`
	// BytesPerSecond limits the speed of each connection.
	BytesPerSecond int64 `json:"bytes_per_second,omitempty"`
}

// active is a fault with its counter.
type active struct {
	Fault
	seen int
}

// befalls reports whether the fault affects a request, and counts the request.
func (a *active) befalls(path string) bool {
	if !strings.Contains(path, a.Path) {
		return false
	}
	a.seen++
	return a.seen > a.Skip && (a.Times == 0 || a.seen <= a.Skip+a.Times)
}

// Fault adds a fault. If several affect a request, the first applies.
func (h *Hub) Fault(f Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, &active{Fault: f})
}

// Mend removes all faults, and ends stalls.
func (h *Hub) Mend() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = nil
	close(h.release)
	h.release = make(chan struct{})
}

// befalling returns the fault that affects a request, or the zero value.
func (h *Hub) befalling(path string) (Fault, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.faults {
		if a.befalls(path) {
			return a.Fault, h.release
		}
	}
	return Fault{}, h.release
}
