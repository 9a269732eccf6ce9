package schedule

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is the scheduler's whole state. Only Step changes it.
type State struct {
	Limits    Limits
	Instances []*Instance // in order of creation
	Waiters   Queue
	Failures  Failures
	Learnt    map[string]Learnt // by key: the measured cost of the model's last load
	Pace      map[string]*pace  // by key: how fast waiters are being served
	Closing   bool
	LastGen   uint64

	SampledAt time.Time        // when the GPUs' memory was last reported
	Sampling  bool             // a report is on its way
	Held      map[string]int64 // by GPU: bytes that other programs hold
	Free      map[string]int64 // by GPU: bytes that were free at the last report
	FreedAt   time.Time        // when a process that was on a GPU last ended
	Lost      []string         // GPUs that an engine didn't find when it was launched

	recovering bool // a load waits for a process that has ended to give its GPU's memory back

	crowd map[string]int // the requests that wait for each model, by key; counted only in a cluster

	lead time.Duration // overrides leadOf in tests; 0: it doesn't
}

// Limits bound what is loaded and how many requests wait. A zero field means no limit.
type Limits struct {
	Instances int    // loaded at the same time
	Memory    int64  // bytes of the machine's memory, for all instances together
	GPUs      []GPU  // those with memory of their own
	Queue     int    // waiting requests for each model
	Node      string // this machine in its cluster; empty: it is in none

	SaveTokens int           // the least number of tokens of a slot whose state is saved
	SaveAfter  time.Duration // once the instance has been idle for that long; 0: none are saved
}

// Instance is a loaded model, or one on its way in or out.
type Instance struct {
	ID       string // the key, or key:2 and so on
	Gen      uint64 // of its process
	Spec     *Spec
	Full     *Spec // the Spec in full size, if it was loaded in a smaller one for lack of room; else nil
	Next     *Spec // what to restart it with once it is idle; nil: no restart is due
	Status   Status
	Leaving  Reason // why it is Draining or Stopping
	InUse    int    // leased slots
	Progress float64
	Trouble  string // the engine's error message about a failing load

	On       Placement      // where it was launched
	Claim    int64          // bytes counted against Limits.Memory
	OnGPUs   []DeviceMemory // bytes counted against Limits.GPUs
	Applied  Applied
	Resident int64 // bytes, as last measured

	PortTaken   bool
	OutOfMemory bool
	NoDevice    bool // it didn't find the GPU that it was to use
	Retrying    bool // it is being stopped while it loads, to be loaded again without other models beside it
	Spared      bool // this is the second attempt after it ran out of memory
	Attempts    int  // launches that failed because the port was taken
	Unasked     bool // restarted by the supervisor: it needs no waiter
	LateGrants  int  // leases granted since Next was set

	Launched time.Time
	LoadTime time.Duration // from launch to ready; 0 until then
	LastUsed time.Time     // when it became ready, or the last request ended
	Answered bool          // it has answered at least one request completely

	Savable bool      // the states of its slots can be kept
	SaveBy  time.Time // when it is stopped although slots are still being saved; zero: none is saved before the stop

	Away      string    // why its remote can't be reached; empty: it can, or there is none
	Held      int       // the slots that its remote allows until HeldUntil
	HeldUntil time.Time // zero: it allows all
	HeldWhy   string    // a sentence; empty: its remote is busy

	book *slotBook // nil: requests don't choose their slots, or none has been used

	promised bool // in this Step: a waiter that was already considered waits for it
	awaited  bool // in this Step: such a waiter waits only for one of its slots, which is being saved
	wanted   bool // in this Step: some waiter can use it
}

// Snapshot returns a copy that the scheduler doesn't change, without what its slots hold.
func (in *Instance) Snapshot() Instance {
	copied := *in
	copied.book = nil
	return copied
}

// Applied is what a process reports about its load.
type Applied struct {
	FlashAttention Toggle
	Buffers        int64        // bytes of weights, caches and scratch buffers on all devices of this machine; 0: not reported
	Allocations    []Allocation // the same by name

	Weights       int64 // bytes, on all devices
	WeightsOnGPUs int64 // bytes
	Layers        int   // of the model, that are on GPUs
	AllLayers     int   // of the model; 0: not reported
	Reduced       bool  // the engine's planner didn't find the room that the placement had
}

// canServe reports whether the instance has the slots that a waiter wants free now. A waiter that wants more slots than the
// instance has gets all of them.
func (in *Instance) canServe(w *Waiter) bool {
	slots := in.slots()
	return in.Status == Ready && slots-in.InUse-in.book.saving() >= min(w.Slots, max(1, slots)) && in.Away == "" &&
		(in.Next == nil || in.LateGrants < maxLateGrants)
}

func (in *Instance) isIdle() bool { return in.Status == Ready && in.InUse == 0 }

// Expires returns when the instance is unloaded for idleness; zero: never, or not while it is in use.
func (in *Instance) Expires() time.Time {
	if in.Spec.TTL <= 0 || !in.isIdle() {
		return time.Time{}
	}
	return in.LastUsed.Add(in.Spec.TTL)
}

// Status is a stage in the life of an instance.
type Status uint8

// The stages, in order. The instance is removed when its process has exited.
const (
	Starting Status = iota // the process is launched
	Loading                // it reports that it loads
	Ready                  // it answers requests
	Draining               // no new requests; it stops when the last one ends
	Stopping               // the process is being stopped
)

var statusNames = [...]string{Starting: "starting", Loading: "loading", Ready: "ready", Draining: "draining", Stopping: "stopping"}

func (s Status) String() string { return statusNames[s] }

// IsLoading reports whether the instance isn't ready yet.
func (s Status) IsLoading() bool { return s == Starting || s == Loading }

// IsLeaving reports whether the instance is draining or stopping.
func (s Status) IsLeaving() bool { return s == Draining || s == Stopping }

// Reason says why an instance is stopped.
type Reason string

// The reasons. The first three are evictions.
const (
	ForRoom     Reason = "room"     // another model needs the room
	ForOthers   Reason = "gpu"      // another program needs the memory of its GPU
	ForIdleness Reason = "ttl"      // it was idle for its time to live
	ForRequest  Reason = "unload"   // an unload was requested
	ForSettings Reason = "settings" // it is restarted with new settings
	ForSharing  Reason = "sharing"  // it is restarted in a smaller size, which leaves room for another
	ForWhole    Reason = "whole"    // it is loaded again without other models beside it, to be wholly on the GPU
	ForSignal   Reason = "signal"   // its process was sent SIGTERM, SIGINT or SIGHUP
	ForSilence  Reason = "hung"     // it had stopped answering
	ForClosing  Reason = "closing"  // the server shuts down
)

// Waiter is an entry of the queue. Each gets exactly one Grant or Refuse, except a WaitRestart, which has no caller.
type Waiter struct {
	ID     uint64
	Kind   WaitKind
	Demand           // WaitLoad, WaitUnload, WaitRestart: Instance is the one in question
	Gen    uint64    // WaitUnload: of the instance; another may take over its name
	Since  time.Time // its arrival
	Turn   time.Time // its position in line: its arrival, unless owners took turns or it has priority

	RefuseAt  time.Time // WaitSlots: when it is refused, since nothing that it can use is reachable; zero: something is
	NotBefore time.Time // WaitRestart: the earliest time
	Spared    bool      // WaitRestart: it ran out of memory
	Unasked   bool      // WaitRestart: it needs no waiter
	Full      *Spec     // WaitRestart: the full size, if Spec is a smaller one; else nil
	Overtaken int       // how many waiters with priority were put before it

	gone bool // in this Step: its wait has ended
}

// WaitKind is what a Waiter waits for.
type WaitKind uint8

// What can be waited for.
const (
	WaitSlots   WaitKind = iota // slots of a ready instance
	WaitLoad                    // a new instance to be ready
	WaitLoaded                  // any instance of the key to be ready, without using it
	WaitUnload                  // an instance to be gone
	WaitRestart                 // an instance that crashed, or has new settings, to be started again
)

// uses reports whether an existing instance can serve the waiter.
func (w *Waiter) uses() bool { return w.Kind == WaitSlots || w.Kind == WaitLoaded }

// Learnt is what a load turned out to cost.
type Learnt struct {
	Spec     *Spec
	Size     modelSize
	LoadTime time.Duration
	// Least is the least that an instance is counted with, in bytes of the machine's memory, because one that was counted with less
	// was killed for want of memory.
	Least int64
}

// Find returns the instance of a process, or nil if the process has been replaced or is gone.
func (st *State) Find(gen uint64) *Instance {
	for _, in := range st.Instances {
		if in.Gen == gen {
			return in
		}
	}
	return nil
}

// ByID returns the instance with an id, or nil.
func (st *State) ByID(id string) *Instance {
	for _, in := range st.Instances {
		if in.ID == id {
			return in
		}
	}
	return nil
}

// named returns the instance that a waiter names, or nil if its model has no such instance.
func (st *State) named(w *Waiter) *Instance {
	in := st.ByID(w.Instance)
	if in != nil && w.Key != "" && in.Spec.Model.Key != w.Key {
		return nil // one model's key may be the name of another's second instance
	}
	return in
}

func (st *State) removeIf(which func(*Instance) bool) {
	st.Instances = slices.DeleteFunc(st.Instances, which)
}

// Restarting returns the pending restart of the instance with an id, or nil.
func (st *State) Restarting(id string) *Waiter {
	return st.Waiters.restart(func(w *Waiter) bool { return w.Instance == id })
}

// launch adds a new instance of a model, with the given id or, if that is empty, a free one. The caller must emit the Spawn.
func (st *State) launch(id string, plan *loadPlan, now time.Time) (*Instance, Spawn) {
	if id == "" {
		id = st.freeID(plan.spec.Model.Key)
	}
	st.LastGen++
	in := &Instance{
		ID: id, Gen: st.LastGen, Spec: plan.spec, Launched: now, LastUsed: now, On: plan.on, Claim: plan.need.memory,
		OnGPUs: plan.need.gpus,
	}
	st.Instances = append(st.Instances, in)
	return in, Spawn{in.ID, in.Gen}
}

func (st *State) freeID(key string) string {
	id := key
	for n := 2; st.isChosen(id); n++ {
		id = key + ":" + strconv.Itoa(n)
	}
	return id
}

func (st *State) isTaken(id string) bool {
	return st.ByID(id) != nil || st.Restarting(id) != nil
}

// isChosen reports whether an instance has an id, in any case, or is about to get it because a load has chosen it.
func (st *State) isChosen(id string) bool {
	return id != "" && (slices.ContainsFunc(st.Instances, func(in *Instance) bool { return strings.EqualFold(in.ID, id) }) ||
		slices.ContainsFunc(st.Waiters, func(w *Waiter) bool {
			return w.Kind == WaitLoad && w.Instance == "" && strings.EqualFold(w.Spec.ID, id) || w.Kind == WaitRestart &&
				strings.EqualFold(w.Instance, id)
		}))
}

// Deadline returns when Step wants a Tick if nothing happens before; zero: never. Call it right after a Step, which has
// done everything that was due by then.
func (st *State) Deadline(now time.Time) time.Time {
	var first time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	sooner(st.samplesAt())
	if in := st.yielding(); in != nil {
		sooner(in.LastUsed.Add(yieldAfter))
	}
	for _, in := range st.Instances {
		sooner(in.Expires())
		sooner(in.HeldUntil)
		sooner(st.savesAt(in))
		if in.Status == Draining {
			sooner(in.SaveBy)
		}
	}
	for _, w := range st.Waiters {
		if w.Kind == WaitRestart {
			sooner(w.NotBefore)
			continue
		}
		sooner(w.RefuseAt)
		if len(st.Failures) > 0 && w.uses() {
			if f := st.Failures[w.Key]; f != nil {
				sooner(f.Until)
			}
		}
	}
	return first
}

// IsRemote reports whether the instance has no process here.
func (in *Instance) IsRemote() bool { return in.Spec.Remote != nil }

// isKept reports whether the instance is never evicted.
func (in *Instance) isKept() bool { return in.Spec.Pinned || in.IsRemote() }

// slots returns how many requests the instance may answer at a time now.
func (in *Instance) slots() int {
	if !in.HeldUntil.IsZero() {
		return min(in.Held, in.Spec.Parallel)
	}
	return in.Spec.Parallel
}

// context returns the length of the context, in tokens; that of a remote which doesn't tell is boundless.
func (in *Instance) context() int {
	if in.IsRemote() && in.Spec.ContextLength == 0 {
		return boundless
	}
	return in.Spec.ContextLength
}

const boundless = 1 << 40
