package schedule

import (
	"fmt"
	"slices"
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

func unreachable(in *Instance) Error {
	return Error{Kind: RemoteAway, RetryAfter: time.Second, Message: fmt.Sprintf(
		"The model %s is on the remote %s, which can't be reached now: %s. It is tried again every second.", in.Spec.Model.Key, in.Spec.Remote.Name, in.Away)}
}

func heldBack(in *Instance, now time.Time) Error {
	after := max(in.HeldUntil.Sub(now).Round(time.Second), time.Second)
	if in.HeldWhy != "" {
		return Error{Kind: RemoteAway, RetryAfter: after, Message: fmt.Sprintf("%s It is tried again in %s.", in.HeldWhy, after)}
	}
	return Error{Kind: QueueFull, RetryAfter: after, Message: fmt.Sprintf(
		"The remote %s takes no more requests for the model %s at the moment. Try again in %s.", in.Spec.Remote.Name, in.Spec.Model.Key, after)}
}

func notThere(key string) Error {
	return Error{Kind: RemoteAway, RetryAfter: time.Second, Message: fmt.Sprintf(
		"The model %s was on a remote, which no longer has it. GET /api/v1/models lists the models that there are.", key)}
}

func notOurs(in *Instance) Error {
	return Error{Kind: NotOurs, Message: fmt.Sprintf(
		"The instance %s is on the remote %s, which loads and unloads its models by itself.", in.ID, in.Spec.Remote.Name)}
}

// leadsTo reports whether every way to the instance passes one of the servers with these ids.
func (in *Instance) leadsTo(ids []string) bool {
	return in.IsRemote() && len(ids) > 0 && slices.ContainsFunc(in.Spec.Remote.Via, func(id string) bool { return slices.Contains(ids, id) })
}
