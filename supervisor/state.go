package supervisor

import (
	"strconv"
	"time"
)

// State is all that scheduling knows. Only Step changes it.
type State struct {
	Instances []*Instance // in order of creation
	Waiters   []*Waiter   // in order of arrival
	Closing   bool
	LastGen   uint64
}

// Instance is a loaded model, or one on its way in or out.
type Instance struct {
	ID       string // the key, or key:2 and so on
	Gen      uint64 // of its process
	Spec     Spec
	Status   Status
	InUse    int // slots that are lent
	Progress float64
	Trouble  string // the engine's own words about a load that fails

	PortTaken bool
	Attempts  int // launches that failed for want of a port

	Launched time.Time
	LoadTime time.Duration // from launch to ready; 0 until then
}

// canServe tells whether the instance has what a waiter wants, now. No instance has more slots than it was loaded with.
func (in *Instance) canServe(w *Waiter) bool {
	return in.Status == Ready && in.Spec.Parallel-in.InUse >= min(w.Slots, in.Spec.Parallel)
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

// Waiter is somebody who waits for the supervisor. Each gets exactly one Grant or Refuse.
type Waiter struct {
	ID       uint64
	Kind     WaitKind
	Key      string
	Instance string // WaitSlots: the one, if it must be; else any of the key. WaitLoad, WaitUnload: the one.
	Slots    int    // WaitSlots: how many
	Spec     Spec   // what to load with, if it comes to that
	MayLoad  bool   // WaitSlots: whether a model that isn't loaded is to be
	SawLoad  bool   // it has waited for a load
	Gen      uint64 // WaitUnload: of the instance that is to go; another may take its name
}

// WaitKind is what a Waiter waits for.
type WaitKind uint8

// What can be waited for.
const (
	WaitSlots  WaitKind = iota // slots of a ready instance
	WaitLoad                   // a new instance to be ready
	WaitLoaded                 // any instance of the key to be ready, without using it
	WaitUnload                 // an instance to be gone
)

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
	for _, in := range st.Instances {
		if in.ID == id {
			return in
		}
	}
	return nil
}

func (st *State) remove(in *Instance) {
	for i := range st.Instances {
		if st.Instances[i] == in {
			st.Instances = append(st.Instances[:i], st.Instances[i+1:]...)
			return
		}
	}
}

// hope tells whether an instance of the key is ready or may become so.
func (st *State) hope(key string) bool {
	for _, in := range st.Instances {
		if in.Spec.Model.Key == key && !in.Status.IsLeaving() {
			return true
		}
	}
	return false
}

// launch makes a new instance of a model. The caller carries out the Spawn.
func (st *State) launch(spec Spec, now time.Time) (*Instance, Spawn) {
	st.LastGen++
	in := &Instance{ID: st.freeID(spec.Model.Key), Gen: st.LastGen, Spec: spec, Launched: now}
	st.Instances = append(st.Instances, in)
	return in, Spawn{in.ID, in.Gen}
}

func (st *State) freeID(key string) string {
	id := key
	for n := 2; st.byID(id) != nil; n++ {
		id = key + ":" + strconv.Itoa(n)
	}
	return id
}
