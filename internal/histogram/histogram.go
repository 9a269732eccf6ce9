// Package histogram counts durations and other sizes for the metrics, without their library: the packages that measure don't
// know how the figures are told.
package histogram

import (
	"slices"
	"time"
)

// The bounds of the histograms of durations, in seconds.
var (
	// Waits are for what a client waits for: in the queue, for a load, for the first token. They go from what nobody notices to
	// the longest patience.
	Waits = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600}
	// Loads are for the time that a model takes to load.
	Loads = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600}
	// Tokens are for the time of one token, from 1000 to less than one in a second.
	Tokens = []float64{0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2.5}
	// Queries are for a database's answers.
	Queries = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30}
)

// Histogram counts observations by size. Its methods aren't safe for concurrent use. [New] makes one: the zero value can't observe
// anything.
type Histogram struct {
	Bounds []float64 // upper bounds, inclusive, in rising order; never changed
	Counts []uint64  // of the observations within the bound of the same index and above the one before; one more: those beyond the last
	Sum    float64
}

// New returns an empty histogram.
func New(bounds []float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

// Observe counts an observation.
func (h *Histogram) Observe(size float64) {
	i, _ := slices.BinarySearch(h.Bounds, size)
	h.Counts[i]++
	h.Sum += size
}

// ObserveTime counts a duration, in seconds.
func (h *Histogram) ObserveTime(d time.Duration) { h.Observe(d.Seconds()) }

// Clone returns a copy that later observations don't change.
func (h *Histogram) Clone() Histogram {
	return Histogram{Bounds: h.Bounds, Counts: slices.Clone(h.Counts), Sum: h.Sum}
}

// Add adds the observations of another histogram with the same bounds.
func (h *Histogram) Add(o Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Sum += o.Sum
}

// Cumulative returns the number of observations, and how many of them are within each bound.
func (h *Histogram) Cumulative() (count uint64, within map[float64]uint64) {
	within = make(map[float64]uint64, len(h.Bounds))
	for i, bound := range h.Bounds {
		count += h.Counts[i]
		within[bound] = count
	}
	return count + h.Counts[len(h.Bounds)], within
}
