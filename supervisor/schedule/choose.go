package schedule

import (
	"slices"

	"github.com/zeebo/xxh3"
)

// choice is the set of instances that a waiter may use: the one that it names, or else those of its model that fit.
type choice struct {
	waiter  *Waiter
	named   *Instance
	away    bool // the one that it names is being restarted
	longest int  // the longest context of the instances that fit otherwise, in tokens

	key uint64 // by which servers are ranked for the model

	// In a cluster:
	self    string // this node; empty: there is no cluster
	here    bool   // this machine would load the model if there were no other node
	settled bool   // no further node needs to load it: it is being loaded here, or the instances that there are suffice
}

func (st *State) choice(w *Waiter) choice {
	c := choice{waiter: w, named: st.named(w)}
	if c.named != nil || !w.uses() {
		return c
	}
	if w.Instance != "" {
		c.away = st.Waiters.restart(func(r *Waiter) bool { return r.isNamedBy(w) }) != nil
	}
	c.lookAround(st)
	if w.Context == (ContextNeed{}) {
		return c
	}
	for _, in := range st.Instances {
		if in.matches(w) && (!in.Status.IsLeaving() || in.Leaving == ForSettings) && in.Away == "" && in.slots() > 0 &&
			(!in.isPeer() || !in.isUnloaded()) {
			c.longest = max(c.longest, in.context())
		}
	}
	for _, r := range st.Waiters.restarts() {
		if !r.gone && r.brings(w) {
			c.longest = max(c.longest, r.Spec.ContextLength)
		}
	}
	return c
}

// has reports whether the waiter may use an instance, now or later.
func (c *choice) has(in *Instance) bool {
	if c.named != nil {
		return in == c.named
	}
	w := c.waiter
	// Another node isn't asked to load the model if that is needless, or done here.
	isNeedless := in.isPeer() && in.isUnloaded() && (c.settled || c.here && rank(c.self, c.key) > rank(in.Spec.Remote.Name, c.key))
	if in.IsRemote() && (w.Kind != WaitSlots || isNeedless || w.Here || slices.Contains(w.Tried, in.Gen)) {
		return false
	}
	return w.uses() && !c.away && in.matches(w) && in.context() >= min(w.Context.Likely, c.longest)
}

// prefers reports whether an instance is better than another: one of an earlier place, then one that surely fits, then one that holds far
// more of the prompt, then the less busy one; see prefersRemote for those of remotes.
func (c *choice) prefers(in, other *Instance) bool {
	if first, second := in.Spec.place(), other.Spec.place(); first != second {
		return first < second
	}
	if in.IsRemote() || other.IsRemote() {
		return c.prefersRemote(in, other)
	}
	safe := min(c.waiter.Context.Safe, c.longest)
	if fits := in.context() >= safe; fits != (other.context() >= safe) {
		return fits
	}
	if more := in.holds(c.waiter) - other.holds(c.waiter); more >= farMore || more <= -farMore {
		return more > 0
	}
	return in.InUse < other.InUse
}

// matches reports whether an instance has the model, the adapter and the draft model that the waiter wants. An instance with a draft model
// that neither the request nor the settings ask for doesn't match, nor does a place that the request has come from.
func (in *Instance) matches(w *Waiter) bool {
	if in.Spec.Model.Key != w.Key {
		return false
	}
	if in.IsRemote() && slices.ContainsFunc(in.Spec.Remote.Via, func(id string) bool { return slices.Contains(w.Hops, id) }) {
		return false
	}
	if !w.takesAdapters(in.Spec) {
		return false
	}
	return w.takesDraft(in.Spec.draft()) || in.Next != nil && w.takesDraft(in.Next.draft())
}

// takesDraft reports whether an instance with that draft model will do. An empty key means no draft model.
func (w *Waiter) takesDraft(draft string) bool {
	if w.Draft != "" {
		return draft == w.Draft
	}
	return draft == "" || draft == w.Spec.draft()
}

func (w *Waiter) takesAdapters(s *Spec) bool {
	return w.Adapter == "" || s.AdapterNumber(w.Adapter) >= 0
}

// brings reports whether the instance that w loads can serve o.
func (w *Waiter) brings(o *Waiter) bool {
	return w.Key == o.Key && (o.takesDraft(w.Spec.draft()) && o.takesAdapters(w.Spec) || w.isNamedBy(o))
}

// isNamedBy reports whether w is for the very instance that o names.
func (w *Waiter) isNamedBy(o *Waiter) bool {
	return w.Key == o.Key && w.Instance != "" && w.Instance == o.Instance
}

// LoadingFor returns the loading instance that a waiter waits for, the one with the most progress. It is nil if there is none,
// or if the waiter waits for a ready one.
func (st *State) LoadingFor(w *Waiter) *Instance {
	var best *Instance
	choice := st.choice(w)
	for _, in := range st.Instances {
		if !choice.has(in) {
			continue
		}
		if in.Status == Ready {
			return nil
		}
		if in.Status.IsLoading() && (best == nil || in.Progress > best.Progress) {
			best = in
		}
	}
	return best
}

// Servers with the same model are ranked (rendezvous hashing): each conversation, and each model, has an order of its own, so that a
// conversation stays where its state probably still is. The nodes of a cluster make the same choice without asking each other, whichever
// of them a request arrives at. If a server comes or goes, only what ranks it first moves.

// rank returns the rank of a node for a number. The highest comes first.
func rank(node string, of uint64) uint64 { return xxh3.HashStringSeed(node, of) }

// AffinityOf returns the number by which nodes are ranked for something that texts identify; never 0.
func AffinityOf(first []byte, more ...[]byte) uint64 {
	head := xxh3.Hash(first)
	for _, text := range more {
		head = xxh3.HashSeed(text, head)
	}
	return max(1, head)
}

// isPeer reports whether the instance is of another node of the cluster.
func (in *Instance) isPeer() bool { return in.IsRemote() && in.Spec.Remote.Peer }

// isUnloaded reports whether a request would first have the instance's remote load the model, as far as is known here.
func (in *Instance) isUnloaded() bool { return in.IsRemote() && !in.Spec.Remote.Loaded }

// node returns the name by which an instance's node is ranked.
func (c *choice) node(in *Instance) string {
	if in.IsRemote() {
		return in.Spec.Remote.Name
	}
	return c.self
}

// lookAround notes whether the waiter's model has to be loaded on a further node, and whether this one would do that if it ranked first.
func (c *choice) lookAround(st *State) {
	w := c.waiter
	c.key = AffinityOf([]byte(w.Key))
	if c.self = st.Limits.Node; c.self == "" || w.Kind != WaitSlots {
		return
	}
	c.here = w.MayLoad
	slots := 0 // of instances that are loaded
	for _, in := range st.Instances {
		switch {
		case !in.matches(w) || in.Status.IsLeaving():
		case !in.IsRemote():
			c.settled, c.here = c.settled || in.Status.IsLoading(), false
			slots += in.slots()
		case in.isPeer() && in.Spec.Remote.Loaded && in.Away == "":
			slots += in.slots()
		}
	}
	if st.crowd[w.Key] <= slots && slots > 0 || st.Waiters.restart(func(r *Waiter) bool { return r.brings(w) }) != nil {
		c.settled = true
	}
	if f := st.Failures[w.Key]; f != nil {
		c.here = false
	}
	if c.here {
		if _, err := (&planner{st: st}).plans(w.Spec, w.Context); err != nil {
			c.here = false
		}
	}
}

// prefersRemote compares instances of which at least one is a remote's: one that is loaded is better, then one that surely fits, then the
// one whose server ranks higher for the conversation, unless it is far busier.
func (c *choice) prefersRemote(in, other *Instance) bool {
	if in.isUnloaded() != other.isUnloaded() {
		return other.isUnloaded()
	}
	if in.isUnloaded() {
		return rank(c.node(in), c.key) > rank(c.node(other), c.key)
	}
	safe := min(c.waiter.Context.Safe, c.longest)
	if fits := in.context() >= safe; fits != (other.context() >= safe) {
		return fits
	}
	order := c.waiter.Affinity
	switch {
	case in.isFarBusier(other):
		return false
	case other.isFarBusier(in):
		return true
	case order != 0 && c.node(in) != c.node(other):
		return rank(c.node(in), order) > rank(c.node(other), order)
	}
	if mine, others := in.InUse*other.Spec.Parallel, other.InUse*in.Spec.Parallel; mine != others {
		return mine < others
	}
	return !in.IsRemote() && other.IsRemote()
}

// isFarBusier reports whether an instance is so much busier than another that a prompt which it has had before is rather processed again
// there.
func (in *Instance) isFarBusier(other *Instance) bool {
	return in.InUse > 2*other.InUse+farBusier
}

// farBusier is the number of requests that one instance may always have more than another.
const farBusier = 4
