package schedule

import (
	"fmt"
	"time"
)

// Connection is what reaches a remote. The scheduler only hands it on.
type Connection interface {
	// Silence returns how long the remote may send nothing while it answers; 0: for ever.
	Silence() time.Duration
}

// Remote is the part of a Spec that says which model of which server an instance is. Such an instance has no process: it is neither
// loaded nor stopped by the supervisor, takes no memory here, and is never evicted.
type Remote struct {
	Server  Connection // what reaches it
	Name    string     // of the remote, in the configuration
	Address string     // for administrators; without a secret
	Kind    string     // of the server, such as "vllm"
	Version string     // of the server; empty: unknown
	Model   string     // what the server calls the model
	Prefer  int        // places with a lower number come first; this machine has 0
	Loaded  bool       // the server has the model loaded, as far as it tells
	Via     []string   // the ids of the servers like this one that every request to it passes, itself included
	Peer    bool       // the server is another node of this machine's cluster
}

// place returns the number by which places are ordered.
func (s *Spec) place() int {
	if s.Remote == nil {
		return 0
	}
	return s.Remote.Prefer
}

// Placed sets the models of a remote, an instance each. Away is why it can't be reached; empty: it can. Without Specs the remote is gone;
// requests under way go on.
type Placed struct {
	Remote string
	Specs  []*Spec
	Away   string
}

func (ev Placed) apply(s *stepper) {
	if s.st.Closing {
		return
	}
	old := map[string]*Instance{}
	for _, in := range s.st.Instances {
		if remote := in.Spec.Remote; remote != nil && remote.Name == ev.Remote {
			old[in.Spec.Remote.Model] = in
		}
	}
	for _, spec := range ev.Specs {
		in := old[spec.Remote.Model]
		if in != nil && in.Spec.Model.Key == spec.Model.Key {
			delete(old, spec.Remote.Model)
			in.Spec = spec
		} else {
			s.st.LastGen++
			id := s.st.freeID(spec.Remote.Name + "/" + spec.Model.Key)
			in = &Instance{ID: id, Gen: s.st.LastGen, Spec: spec, Status: Ready, Launched: s.now, LastUsed: s.now}
			s.st.Instances = append(s.st.Instances, in)
		}
		in.Away = ev.Away
	}
	s.st.removeIf(func(in *Instance) bool { return in.Spec.Remote != nil && old[in.Spec.Remote.Model] == in })
}

// Throttled says that a remote has turned away a request on some slots, and wants no more than it has until a time.
type Throttled struct {
	Gen   uint64
	Slots int
	Until time.Time
	Why   string // a sentence; empty: it is busy
}

func (ev Throttled) apply(s *stepper) {
	in := s.st.Find(ev.Gen)
	if in == nil || in.Spec.Remote == nil || !ev.Until.After(s.now) {
		return
	}
	slots := max(0, in.InUse-ev.Slots)
	if !in.HeldUntil.IsZero() {
		slots = min(slots, in.Held)
	}
	in.Held = slots
	if ev.Until.After(in.HeldUntil) {
		in.HeldUntil, in.HeldWhy = ev.Until, ev.Why
	}
}

func unreachable(in *Instance) Error {
	return Error{Kind: RemoteAway, RetryAfter: time.Second, Message: fmt.Sprintf(
		"The model %s is on the remote %s, which can't be reached now: %s. It is tried again every second.", in.Spec.Model.Key,
		in.Spec.Remote.Name, in.Away)}
}

func heldBack(in *Instance, now time.Time) Error {
	after := max(in.HeldUntil.Sub(now).Round(time.Second), time.Second)
	if in.HeldWhy != "" {
		return Error{Kind: RemoteAway, RetryAfter: after, Message: fmt.Sprintf("%s It is tried again in %s.", in.HeldWhy, after)}
	}
	return Error{Kind: QueueFull, RetryAfter: after, Message: fmt.Sprintf(
		"The remote %s takes no more requests for the model %s at the moment. Try again in %s.", in.Spec.Remote.Name,
		in.Spec.Model.Key, after)}
}

func notThere(key string) Error {
	return Error{Kind: RemoteAway, RetryAfter: time.Second, Message: fmt.Sprintf(
		"The model %s was on a remote, which no longer has it. GET /api/v1/models lists the models that there are.", key)}
}

func notOurs(in *Instance) Error {
	return Error{Kind: NotOurs, Message: fmt.Sprintf(
		"The instance %s is on the remote %s, which loads and unloads its models by itself.", in.ID, in.Spec.Remote.Name)}
}
