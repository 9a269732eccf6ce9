// Package ring keeps the newest values of a sequence in memory, for readers that come and go. A reader is a position in the
// sequence: a ring knows nothing of its readers, so one that is slow costs nothing, and is told how many values it has missed.
package ring

import (
	"sync"
)

// Ring holds the newest values of a sequence. Its methods may be called from any goroutine.
type Ring[T any] struct {
	most  int
	bytes int64

	mu      sync.Mutex
	kept    []entry[T] // from start on
	start   int
	size    int64         // of what is kept, in bytes
	next    uint64        // the position of the next value
	changed chan struct{} // nil: nobody waits
}

type entry[T any] struct {
	value T
	size  int
}

// New returns a ring that keeps at most "most" values, which together take at most "bytes" bytes. It always keeps the newest.
func New[T any](most int, bytes int64) *Ring[T] { return &Ring[T]{most: most, bytes: bytes} }

// Add appends a value, which takes size bytes, and removes the oldest ones for which there is no room. It returns the value's
// position in the sequence; the first one's is 0.
func (r *Ring[T]) Add(value T, size int) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, entry[T]{value, size})
	r.size += int64(size)
	for n := len(r.kept) - r.start; n > 1 && (n > r.most || r.size > r.bytes); n-- {
		r.size -= int64(r.kept[r.start].size)
		r.kept[r.start] = entry[T]{} // nothing is kept alive by it
		r.start++
	}
	if r.start > len(r.kept)/2 {
		n := copy(r.kept, r.kept[r.start:])
		clear(r.kept[n:])
		r.kept, r.start = r.kept[:n], 0
	}
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	r.next++
	return r.next - 1
}

// Next returns the position of the next value.
func (r *Ring[T]) Next() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

// From returns the values from a position on, no more than most, and the position after them. lost is how many values after that position
// are no longer kept. A position after the newest value counts as the next one.
func (r *Ring[T]) From(position uint64, most int) (values []T, next, lost uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.kept[r.start:]
	oldest := r.next - uint64(len(kept))
	if position < oldest {
		lost, position = oldest-position, oldest
	}
	if position >= r.next {
		return nil, r.next, lost
	}
	kept = kept[position-oldest:]
	kept = kept[:min(len(kept), most)]
	values = make([]T, len(kept))
	for i := range kept {
		values[i] = kept[i].value
	}
	return values, position + uint64(len(kept)), lost
}

// Changed returns a channel that is closed when the next value is added. To miss none, a reader has to call it before From.
func (r *Ring[T]) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}
