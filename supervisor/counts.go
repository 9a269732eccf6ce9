package supervisor

import (
	"maps"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/histogram"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Counts counts what has happened to a model since the start. Durations are in seconds.
type Counts struct {
	Loads   histogram.Histogram
	Stops   map[schedule.Reason]uint64 // number of deliberate stops
	Crashes uint64
	Phases  map[Phase]histogram.Histogram // a phase that never happened is missing
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
		n = &Counts{Loads: histogram.New(histogram.Loads), Stops: map[schedule.Reason]uint64{}, Phases: map[Phase]histogram.Histogram{}}
		c.byKey[key] = n
	}
	change(n)
}

func (c *counts) took(key string, phase Phase, d time.Duration) {
	c.with(key, func(n *Counts) {
		h, ok := n.Phases[phase]
		if !ok {
			h = histogram.New(histogram.Waits)
		}
		h.ObserveTime(max(0, d))
		n.Phases[phase] = h
	})
}

// Counts returns the counts of each model, by key.
func (s *Supervisor) Counts() map[string]Counts {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	all := map[string]Counts{}
	for key, n := range s.counts.byKey {
		c := *n
		c.Loads, c.Stops, c.Phases = n.Loads.Clone(), maps.Clone(n.Stops), map[Phase]histogram.Histogram{}
		for phase, h := range n.Phases {
			c.Phases[phase] = h.Clone()
		}
		all[key] = c
	}
	return all
}

// loaded counts and logs a load that has just ended.
func (s *Supervisor) loaded(in *schedule.Instance) {
	info, key, launch := s.info(in), in.Spec.Model.Key, time.Duration(0)
	if p := s.running[in.Gen]; p != nil {
		if l := p.Launched(); l != nil {
			launch = min(max(0, l.At.Sub(in.Launched)), in.LoadTime)
		}
	}
	s.counts.with(key, func(n *Counts) { n.Loads.ObserveTime(in.LoadTime) })
	s.counts.took(key, PhaseLaunch, launch)
	s.counts.took(key, PhaseLoad, in.LoadTime-launch)
	logOn(s.log, info.Placed()).Info("model loaded", "instance", in.ID, "load_time", in.LoadTime, "memory", schedule.FormatBytes(info.Memory))
	if !info.IsSplit() {
		return
	}
	advice := "choose a smaller quantization or a shorter context_length, or free memory of the GPU"
	if len(s.state.GPUsOf(in.Spec)) == 0 {
		advice = "the engine doesn't find its GPU any more"
	}
	s.log.Warn("a model is not wholly on the GPU, which makes it many times slower: "+advice, "instance", in.ID, "on", info.Placed())
}
