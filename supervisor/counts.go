package supervisor

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/histogram"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// loadBounds are the upper bounds of the histogram of load times, in seconds.
var loadBounds = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600}

// Counts counts what has happened to a model since the start.
type Counts struct {
	Loads       uint64
	LoadSeconds float64                    // of all loads together
	LoadBuckets []uint64                   // number of loads within the bound of the same index in LoadBounds
	Stops       map[schedule.Reason]uint64 // number of deliberate stops
	Crashes     uint64
	Phases      map[Phase]histogram.Histogram // durations in seconds; a phase that never happened is missing
}

// Phase is a part of a swap: of the time between the decision to unload a model and the first answer of another.
type Phase string

// The phases.
const (
	PhaseUnload  Phase = "unload"  // ending a process, from the order to its exit
	PhaseLaunch  Phase = "launch"  // starting a process, until it runs
	PhaseLoad    Phase = "load"    // until it is ready
	PhaseRestore Phase = "restore" // reading the saved state of a prompt
)

// Phases lists all phases, in order.
var Phases = []Phase{PhaseUnload, PhaseLaunch, PhaseLoad, PhaseRestore}

// LoadBounds returns the bounds of Counts.LoadBuckets, in seconds.
func LoadBounds() []float64 { return slices.Clone(loadBounds) }

// counts is written while events are handled, and read by the metrics.
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
		n = &Counts{LoadBuckets: make([]uint64, len(loadBounds)), Stops: map[schedule.Reason]uint64{}}
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

func (c *counts) took(key string, phase Phase, d time.Duration) {
	c.with(key, func(n *Counts) {
		h, ok := n.Phases[phase]
		if !ok {
			if n.Phases == nil {
				n.Phases = map[Phase]histogram.Histogram{}
			}
			h = histogram.New(histogram.Waits)
		}
		h.ObserveTime(max(0, d))
		n.Phases[phase] = h
	})
}

func (c *counts) crashed(key string) { c.with(key, func(n *Counts) { n.Crashes++ }) }

// Counts returns the counts of each model, by key.
func (s *Supervisor) Counts() map[string]Counts {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	all := map[string]Counts{}
	for key, n := range s.counts.byKey {
		c := *n
		c.LoadBuckets, c.Stops, c.Phases = slices.Clone(n.LoadBuckets), maps.Clone(n.Stops), map[Phase]histogram.Histogram{}
		for phase, h := range n.Phases {
			c.Phases[phase] = h.Clone()
		}
		all[key] = c
	}
	return all
}

// measureLoad counts the phases of a load that has just ended.
func (s *Supervisor) measureLoad(in *schedule.Instance) {
	launch := time.Duration(0)
	if p := s.running[in.Gen]; p != nil {
		if l := p.Launched(); l != nil {
			launch = min(max(0, l.At.Sub(in.Launched)), in.LoadTime)
		}
	}
	s.counts.took(in.Spec.Model.Key, PhaseLaunch, launch)
	s.counts.took(in.Spec.Model.Key, PhaseLoad, in.LoadTime-launch)
}

// measureUnload counts how long a process that has exited took to end, if it was told to.
func (s *Supervisor) measureUnload(gen uint64) {
	in, p := s.state.Find(gen), s.running[gen]
	if in == nil || p == nil {
		return
	}
	if took, ok := p.StopTook(); ok {
		s.counts.took(in.Spec.Model.Key, PhaseUnload, took)
	}
}
