package fakehub

import (
	"strings"
	"time"
)

// Fault is something that goes wrong with requests. What isn't set isn't wrong.
type Fault struct {
	// Path is a part of the paths of the requests that it befalls, such as "/api/", "/resolve/", "/cdn/" or a file's name;
	// empty: all.
	Path string `json:"path,omitempty"`
	// Skip is how many such requests go well before; Times how many it befalls then; 0: all of them.
	Skip  int `json:"skip,omitempty"`
	Times int `json:"times,omitempty"`

	// Status is answered instead, with Header.
	Status int               `json:"status,omitempty"`
	Header map[string]string `json:"header,omitempty"` // set on any answer, over what it has
	// Redirect is where the request is sent: an address without the path, or with it where it ends in "*".
	Redirect string `json:"redirect,omitempty"`
	// Delay is the time before the answer.
	Delay time.Duration `json:"delay,omitempty"`

	// Cut breaks the connection after so many bytes of the body; CutAtOnce before the first.
	Cut       int64 `json:"cut,omitempty"`
	CutAtOnce bool  `json:"cut_at_once,omitempty"`
	// Stall says nothing more after so many bytes, until the client goes or Release is called; StallAtOnce before the first.
	Stall       int64 `json:"stall,omitempty"`
	StallAtOnce bool  `json:"stall_at_once,omitempty"`
	// NoRanges sends whole files, whatever is asked.
	NoRanges bool `json:"no_ranges,omitempty"`
	// NoTags sends no ETag; OtherTags one that no other answer has; WeakTags a weak one.
	NoTags    bool `json:"no_tags,omitempty"`
	OtherTags bool `json:"other_tags,omitempty"`
	WeakTags  bool `json:"weak_tags,omitempty"`
	// Longer is added to every length that is told of the file; Chunked tells none.
	Longer  int64 `json:"longer,omitempty"`
	Chunked bool  `json:"chunked,omitempty"`
	// Damage flips a bit of the byte at this offset, counted from 1.
	Damage int64 `json:"damage,omitempty"`
	// WrongRange answers with the bytes from the start, in the range's name.
	WrongRange bool `json:"wrong_range,omitempty"`
	// BytesPerSecond bounds the speed of each connection.
	BytesPerSecond int64 `json:"bytes_per_second,omitempty"`
}

// active is a fault with its count.
type active struct {
	Fault
	seen int
}

// befalls tells whether the fault befalls a request, and counts it.
func (a *active) befalls(path string) bool {
	if !strings.Contains(path, a.Path) {
		return false
	}
	a.seen++
	return a.seen > a.Skip && (a.Times == 0 || a.seen <= a.Skip+a.Times)
}

// Fault adds a fault. Of several that befall a request the first counts.
func (h *Hub) Fault(f Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = append(h.faults, &active{Fault: f})
}

// Mend ends all faults, and the stalls that they have led to.
func (h *Hub) Mend() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = nil
	close(h.release)
	h.release = make(chan struct{})
}

// befalling is the fault that befalls a request; the zero value is none.
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
