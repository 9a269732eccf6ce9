package supervisor

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// loadBounds are the upper bounds of the histogram of load times, in seconds.
var loadBounds = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600}

// Counts counts what has happened to a model since the start.
type Counts struct {
	Loads       uint64
	LoadSeconds float64           // of all loads together
	LoadBuckets []uint64          // number of loads within the bound of the same index in LoadBounds
	Stops       map[Reason]uint64 // number of deliberate stops
	Crashes     uint64
}

// LoadBounds returns the bounds of Counts.LoadBuckets, in seconds.
func LoadBounds() []float64 { return slices.Clone(loadBounds) }

// counts is written by the loop and read by the metrics.
type counts struct {
	mu    sync.Mutex
	byKey map[string]*Counts
}

func (c *counts) with(key string, change func(*Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[string]*Counts{}
	}
	n := c.byKey[key]
	if n == nil {
		n = &Counts{LoadBuckets: make([]uint64, len(loadBounds)), Stops: map[Reason]uint64{}}
		c.byKey[key] = n
	}
	change(n)
}

func (c *counts) loaded(key string, took time.Duration) {
	c.with(key, func(n *Counts) {
		n.Loads++
		n.LoadSeconds += took.Seconds()
		for i, bound := range loadBounds {
			if took.Seconds() <= bound {
				n.LoadBuckets[i]++
			}
		}
	})
}

func (c *counts) stopped(key string, why Reason) { c.with(key, func(n *Counts) { n.Stops[why]++ }) }

func (c *counts) crashed(key string) { c.with(key, func(n *Counts) { n.Crashes++ }) }

// Counts returns the counts of each model, by key.
func (s *Supervisor) Counts() map[string]Counts {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	all := map[string]Counts{}
	for key, n := range s.counts.byKey {
		c := *n
		c.LoadBuckets, c.Stops = slices.Clone(n.LoadBuckets), maps.Clone(n.Stops)
		all[key] = c
	}
	return all
}
