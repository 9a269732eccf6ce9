package supervisor

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/histogram"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Info is a snapshot of an instance.
type Info struct {
	schedule.Instance

	Memory   int64         // bytes that are counted for it
	LoadedAt time.Time     // when it became ready; zero before
	Expires  time.Time     // when it is unloaded if it stays idle; zero: never, or not while it is in use
	PID      int           // 0 before it is launched
	Address  string        // the path of its socket, or 127.0.0.1 and a port; empty before it is launched
	Sandbox  string        // what confines the process, or why nothing does; empty before it is launched
	Build    process.Build // zero before it is launched
	Batch    int           // tokens of a prompt that are evaluated at a time; 0: unknown
}

// OnMachine returns the part of Memory that is counted against the machine's.
func (i *Info) OnMachine() int64 {
	left := i.Memory
	for _, d := range i.OnGPUs {
		left -= d.Bytes
	}
	return left
}

// IsLoaded reports whether the instance can answer, or did until it was told to end. One of a remote also has to be loaded there, as far as
// the remote tells.
func (i *Info) IsLoaded() bool {
	if remote := i.Spec.Remote; remote != nil {
		return remote.Loaded && i.Away == ""
	}
	return i.Status == schedule.Ready || i.Status == schedule.Draining
}

// FlashAttention reports whether flash attention is used: what the engine reported, or else what was requested.
func (i Info) FlashAttention() bool {
	t := i.Applied.FlashAttention
	if t == schedule.Auto {
		t = i.Spec.FlashAttention
	}
	return t == schedule.On
}

// Experts returns the number of active experts; 0: the model has none.
func (i Info) Experts() int {
	if i.Spec.Experts > 0 {
		return i.Spec.Experts
	}
	return i.Spec.Model.ExpertsUsed
}

// Coming describes a pending restart.
type Coming struct {
	ID  string
	Key string
	At  time.Time
	Why string // why it ended; empty: new settings

	Spec *schedule.Spec // that it is started with
}

// Failing describes a model that has failed and hasn't worked since.
type Failing struct {
	Key   string
	Count int       // failures in a row
	Until time.Time // when the next load may be tried; in the past: now
	Why   string    // the last failure
}

// GPUUse is a GPU with what is taken of it.
type GPUUse struct {
	schedule.GPU
	Held    int64 // bytes that other programs hold, as far as that is known
	Free    int64 // bytes, as last reported
	IsKnown bool  // Free was reported
}

// Overview is a snapshot of the supervisor.
type Overview struct {
	Limits    schedule.Limits
	GPUs      []GPUUse // in the order of the limits
	Instances []Info   // in order of loading
	Coming    []Coming
	Failing   []Failing      // by key
	Waiting   map[string]int // number of requests, by key
}

// GPU returns a GPU by its name; nil: there is none with memory of its own.
func (o *Overview) GPU(name string) *GPUUse {
	if i := slices.IndexFunc(o.GPUs, func(g GPUUse) bool { return g.Name == name }); i >= 0 {
		return &o.GPUs[i]
	}
	return nil
}

// Instances returns a snapshot of the instances, in order of loading.
func (s *Supervisor) Instances() []Info { return s.Overview().Instances }

// Overview returns a snapshot of the supervisor.
func (s *Supervisor) Overview() Overview {
	var o Overview
	s.look(func() { o = s.overview() })
	return o
}

func (s *Supervisor) overview() Overview {
	o := Overview{Limits: s.state.Limits, Waiting: map[string]int{}}
	for _, g := range s.state.Limits.GPUs {
		use := GPUUse{GPU: g, Held: s.state.Held[g.Name]}
		use.Free, use.IsKnown = s.state.Free[g.Name]
		o.GPUs = append(o.GPUs, use)
	}
	for _, in := range s.state.Instances {
		o.Instances = append(o.Instances, s.info(in))
	}
	for _, w := range s.state.Waiters {
		switch w.Kind {
		case schedule.WaitSlots:
			o.Waiting[w.Key]++
		case schedule.WaitRestart:
			c := Coming{ID: w.Instance, Key: w.Key, At: w.NotBefore, Spec: w.Spec}
			if f := s.state.Failures[w.Key]; w.Spared {
				c.Why = "it ran out of memory while it was loading"
			} else if f != nil && f.Until.Equal(w.NotBefore) { // otherwise the failure is an older one, and the restart is for new settings
				c.Why = f.Message
			}
			o.Coming = append(o.Coming, c)
		}
	}
	for key, f := range s.state.Failures {
		if f.Counts(time.Now()) {
			o.Failing = append(o.Failing, Failing{key, f.Count, f.Until, f.Message})
		}
	}
	slices.SortFunc(o.Failing, func(a, b Failing) int { return cmp.Compare(a.Key, b.Key) })
	return o
}

func (s *Supervisor) info(in *schedule.Instance) Info {
	info := Info{Instance: in.Snapshot(), Expires: in.Expires(), Memory: in.Memory()}
	if remote := in.Spec.Remote; remote != nil {
		info.Address, info.Build = remote.Address, process.Build{Engine: remote.Kind, Version: remote.Version}
		return info
	}
	info.Batch = process.BatchSize(s.engines[in.Spec.Engine], in.Spec)
	if in.LoadTime > 0 {
		info.LoadedAt = in.Launched.Add(in.LoadTime)
	}
	if p := s.running[in.Gen]; p != nil {
		if launched := p.Launched(); launched != nil {
			info.PID, info.Address, info.Build, info.Sandbox = launched.PID, launched.Address, launched.Build, launched.Sandbox
		}
	}
	return info
}

// Devices returns how the Memory of the instance is spread over the devices of this machine, the machine's memory first; nil: it
// isn't known.
func (i Info) Devices() []schedule.DeviceMemory {
	if i.Build.Devices == nil && len(i.OnGPUs) == 0 {
		return nil
	}
	machine, gpus := i.OnMachine(), slices.Clone(i.OnGPUs)
	for _, d := range i.Build.Devices { // those that share the machine's memory are told apart by what the engine reports
		if bytes := i.Applied.BytesOn(d.Name); d.Unified && !d.IsCPU() && bytes > 0 {
			machine = max(0, machine-bytes)
			gpus = append(gpus, schedule.DeviceMemory{Device: d.Name, Bytes: bytes})
		}
	}
	return append([]schedule.DeviceMemory{{Device: schedule.CPU, Bytes: machine}}, gpus...)
}

// IsSplit reports whether a part of the model, or all of it, is on the processor although the engine has a GPU, and nobody has chosen that.
func (i Info) IsSplit() bool {
	isChosen := i.Spec.NoGPU || i.Spec.GPULayers != nil
	return !isChosen && (i.On.IsPartial() || i.Applied.IsShort(&i.On))
}

// Placed describes where the model is, such as "CUDA0", "27 of 33 layers on CUDA0 (82 % of the weights)" or "the processor". It is empty if
// nothing else than the processor comes into question.
func (i Info) Placed() string { return i.On.Describe(&i.Applied) }

// IsOnProcessor reports whether nothing of the model is on a GPU, although the engine has one.
func (i Info) IsOnProcessor() bool {
	return i.On.Processor || i.Applied.IsElsewhere(&i.On)
}

// Outlook returns what a load would do now. It changes nothing.
func (s *Supervisor) Outlook(spec *schedule.Spec) schedule.Outlook {
	o := schedule.Outlook{Refused: &schedule.ErrClosing}
	s.look(func() { o = s.state.Outlook(spec, time.Now()) })
	return o
}

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
	log := logOn(s.log, info.Placed())
	log.Info("model loaded", "instance", in.ID, "load_time", in.LoadTime, "memory", schedule.FormatBytes(info.Memory))
	if !info.IsSplit() {
		return
	}
	advice := "choose a smaller quantization or a shorter context_length, or free memory of the GPU"
	if len(s.state.GPUsOf(in.Spec)) == 0 {
		advice = "the engine doesn't find its GPU any more"
	}
	s.log.Warn("a model is not wholly on the GPU, which makes it many times slower: "+advice, "instance", in.ID, "on", info.Placed())
}
