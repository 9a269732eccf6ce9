package schedule

import "github.com/zeebo/xxh3"

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
