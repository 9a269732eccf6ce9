package supervisor

import (
	"strconv"
	"time"
)

// State is all that scheduling knows. Only Step changes it.
type State struct {
	Limits    Limits
	Instances []*Instance         // in order of creation
	Waiters   []*Waiter           // what is to be started again, then who waits, in order of arrival but for priority
	Failures  map[string]*Failure // by key: of models that failed and haven't worked since
	Learnt    map[string]Learnt   // by key: what the last load of a model really took
	Pace      map[string]*pace    // by key: how fast waiters were served lately
	Closing   bool
	LastGen   uint64

	lead time.Duration // instead of what leadOf says; 0: that
}

// Limits bound what is loaded and who may wait. A zero field means no bound.
type Limits struct {
	Instances int   // loaded at a time
	Memory    int64 // bytes that all instances may take together
	Queue     int   // waiting requests for each model
	Abandon   bool  // end a load that nobody waits for any more
}

// Instance is a loaded model, or one on its way in or out.
type Instance struct {
	ID       string // the key, or key:2 and so on
	Gen      uint64 // of its process
	Spec     *Spec
	Full     *Spec // what it would have been loaded with if there had been room; nil: it was
	Next     *Spec // what it is to be started again with, once it is idle; nil: nothing has changed
	Status   Status
	Leaving  Reason // why it is Draining or Stopping
	InUse    int    // slots that are lent
	Progress float64
	Trouble  string // the engine's own words about a load that fails

	Claim    int64 // bytes that it is counted with
	Applied  Applied
	Resident int64 // bytes, as last measured

	PortTaken   bool
	OutOfMemory bool
	Spared      bool // it has been started again after it ran out of memory
	Attempts    int  // launches that failed for want of a port
	Unasked     bool // started again by us: nobody need wait for it
	LateGrants  int  // since it was to have other settings

	Launched time.Time
	LoadTime time.Duration // from launch to ready; 0 until then
	LastUsed time.Time     // when it became ready, or the last request ended
	Answered bool          // a request, to its end

	book *slotBook // who used which slot; nil: owners aren't kept apart, or nobody has used it

	promised bool // in this Step: a waiter that was looked at waits for it
	wanted   bool // in this Step: somebody waits for it
}

// Applied is what a process says that it was really loaded with.
type Applied struct {
	FlashAttention Toggle
	Buffers        int64 // bytes of weights, caches and work space, on whatever device; 0 where it doesn't say
}

// canServe tells whether the instance has what a waiter wants, now. No instance has more slots than it was loaded with.
func (in *Instance) canServe(w *Waiter) bool {
	return in.Status == Ready && in.Spec.Parallel-in.InUse >= min(w.Slots, in.Spec.Parallel) &&
		(in.Next == nil || in.LateGrants < maxLateGrants)
}

// isIdle tells whether nothing is asked of a ready instance.
func (in *Instance) isIdle() bool { return in.Status == Ready && in.InUse == 0 }

// Expires is when an instance's idle time is over; zero: never, or not while it is used.
func (in *Instance) Expires() time.Time {
	if in.Spec.TTL <= 0 || !in.isIdle() {
		return time.Time{}
	}
	return in.LastUsed.Add(in.Spec.TTL)
}

// Status is where an instance stands.
type Status uint8

// The way of an instance. It leaves the state when its process has ended.
const (
	Starting Status = iota // the process is launched
	Loading                // it says that it loads
	Ready                  // it answers requests
	Draining               // no new requests; it goes when the last one ends
	Stopping               // it is being ended
)

var statusNames = [...]string{Starting: "starting", Loading: "loading", Ready: "ready", Draining: "draining", Stopping: "stopping"}

func (s Status) String() string { return statusNames[s] }

// IsLoading tells whether the instance is on its way in.
func (s Status) IsLoading() bool { return s == Starting || s == Loading }

// IsLeaving tells whether the instance is on its way out.
func (s Status) IsLeaving() bool { return s == Draining || s == Stopping }

// Reason says why an instance is ended.
type Reason string

// The reasons. The first two are evictions.
const (
	ForRoom     Reason = "room"      // another model needs its place
	ForIdleness Reason = "ttl"       // nobody has used it for its time to live
	ForRequest  Reason = "unload"    // somebody asked for that
	ForSettings Reason = "settings"  // it is started again with new ones
	ForSharing  Reason = "sharing"   // it is started again with fewer slots, which leaves room for another
	ForNobody   Reason = "abandoned" // nobody waits for its load any more
	ForSignal   Reason = "signal"    // its process was sent SIGTERM, SIGINT or SIGHUP
	ForSilence  Reason = "hung"      // it had stopped answering
	ForClosing  Reason = "closing"   // the server shuts down
)

// Waiter is somebody who waits for the supervisor. Each gets exactly one Grant or Refuse, but a WaitRestart: behind that is
// nobody.
type Waiter struct {
	ID       uint64
	Kind     WaitKind
	Key      string
	Instance string // WaitSlots: the one, if it must be; else any of the key. WaitLoad, WaitUnload, WaitRestart: the one.
	Draft    string // WaitSlots: the key of the draft model that the instance must have; empty: none, or the Spec's
	Slots    int    // WaitSlots: how many
	Owner    string // WaitSlots: who asks; the queue is shared fairly among owners, and where they are kept apart each has slots of its own
	Spec     *Spec  // what to load with, if it comes to that
	MayLoad  bool   // WaitSlots: whether a model that isn't loaded is to be
	Priority bool   // WaitSlots: goes before those without, within bounds
	Gen      uint64 // WaitUnload: of the instance that is to go; another may take its name
	Since    time.Time
	Context  ContextNeed // WaitSlots: tokens that the request takes
	Turn     time.Time   // by which it stands in line: when it came, but for owners that take turns, and for priority

	NotBefore time.Time // WaitRestart: when
	Spared    bool      // WaitRestart: it ran out of memory
	Unasked   bool      // WaitRestart: nobody need wait for it
	Full      *Spec     // WaitRestart: what it is loaded with when there is room, if Spec is smaller; nil: Spec
	Overtaken int       // how many with priority were put before it

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
	WaitRestart                 // an instance that ended against our will, or for its settings, to be started again
)

// uses tells whether the waiter can be served by an instance that is there already.
func (w *Waiter) uses() bool { return w.Kind == WaitSlots || w.Kind == WaitLoaded }

// Failure is what is remembered of a model that fails.
type Failure struct {
	Count   int       // in a row
	At      time.Time // the last one
	Until   time.Time // when it may be tried again
	Message string    // for operators
	Told    string    // for clients, where the message may have what others asked; empty: the message
	changed time.Time // of the model's file: a new file is a new chance
}

// Learnt is what a load really took.
type Learnt struct {
	Spec     *Spec
	Claim    int64
	LoadTime time.Duration
}

// find is the instance of a process, nil if the process has been replaced or is gone.
func (st *State) find(gen uint64) *Instance {
	for _, in := range st.Instances {
		if in.Gen == gen {
			return in
		}
	}
	return nil
}

func (st *State) byID(id string) *Instance {
	if id == "" {
		return nil
	}
	for _, in := range st.Instances {
		if in.ID == id {
			return in
		}
	}
	return nil
}

// named is the instance that a waiter asks for by its name, nil if there is none of its model.
func (st *State) named(w *Waiter) *Instance {
	in := st.byID(w.Instance)
	if in != nil && w.Key != "" && in.Spec.Model.Key != w.Key {
		return nil // one model's key may be the name of another's second instance
	}
	return in
}

// restart is the waiter behind which an instance is to come back; nil if there is none.
func (st *State) restart(which func(*Waiter) bool) *Waiter {
	for _, w := range st.Waiters[:st.restarts()] {
		if !w.gone && which(w) {
			return w
		}
	}
	return nil
}

// restarts is how many waiters stand before all others, since each is an instance that is to come back.
func (st *State) restarts() int {
	n := 0
	for n < len(st.Waiters) && st.Waiters[n].Kind == WaitRestart {
		n++
	}
	return n
}

func (st *State) remove(in *Instance) {
	for i := range st.Instances {
		if st.Instances[i] == in {
			st.Instances = append(st.Instances[:i], st.Instances[i+1:]...)
			return
		}
	}
}

// launch makes a new instance of a model, of this name or a free one, that is counted with so many bytes. The caller carries
// out the Spawn.
func (st *State) launch(id string, spec *Spec, claim int64, now time.Time) (*Instance, Spawn) {
	if id == "" {
		id = st.freeID(spec.Model.Key)
	}
	st.LastGen++
	in := &Instance{ID: id, Gen: st.LastGen, Spec: spec, Launched: now, LastUsed: now, Claim: claim}
	st.Instances = append(st.Instances, in)
	return in, Spawn{in.ID, in.Gen}
}

func (st *State) freeID(key string) string {
	id := key
	for n := 2; st.isTaken(id); n++ {
		id = key + ":" + strconv.Itoa(n)
	}
	return id
}

func (st *State) isTaken(id string) bool {
	return st.byID(id) != nil || st.restart(func(w *Waiter) bool { return w.Instance == id }) != nil
}

// need is how many bytes a load is counted with: what the same load took the last time, else the estimate.
func (st *State) need(spec *Spec) int64 {
	if l, ok := st.Learnt[spec.Model.Key]; ok && l.Spec.isProcessOf(spec) {
		return l.Claim
	}
	return spec.Memory
}

// Deadline is when Step wants a Tick, if nothing happens before; zero: never. It is asked right after a Step, which has
// done what was due by then.
func (st *State) Deadline(now time.Time) time.Time {
	var first time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	for _, in := range st.Instances {
		sooner(in.Expires())
	}
	for _, w := range st.Waiters {
		if w.Kind == WaitRestart {
			sooner(w.NotBefore)
		} else if len(st.Failures) > 0 && w.uses() {
			if f := st.Failures[w.Key]; f != nil {
				sooner(f.Until)
			}
		}
	}
	return first
}
