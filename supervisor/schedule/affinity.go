package schedule

import (
	"github.com/zeebo/xxh3"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// The nodes of a cluster are remotes that run the same models as this machine. Each request may arrive at any of them, so all have
// to make the same choice without asking each other: they compare the ranks of the nodes (rendezvous hashing), of which each
// conversation, and each model, has an order of its own. If a node comes or goes, only what ranks it first moves.

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

// isUnloadedPeer reports whether a request would first have another node load the model, as far as is known here.
func (in *Instance) isUnloadedPeer() bool { return in.isPeer() && !in.Spec.Remote.Loaded }

// node returns the name by which an instance's node is ranked.
func (c *choice) node(in *Instance) string {
	if in.IsRemote() {
		return in.Spec.Remote.Name
	}
	return c.self
}

// isNeedless reports whether another node isn't asked to load the waiter's model, since that is needless, or done here.
func (c *choice) isNeedless(in *Instance) bool {
	return in.isUnloadedPeer() && (c.settled || c.here && rank(c.self, c.key) > rank(in.Spec.Remote.Name, c.key))
}

// lookAround notes whether the waiter's model has to be loaded on a further node, and whether this one would do that if it ranked first.
func (c *choice) lookAround(st *State) {
	w := c.waiter
	if c.self = st.Limits.Node; c.self == "" || w.Kind != WaitSlots {
		return
	}
	c.key = AffinityOf([]byte(w.Key))
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

// countCrowd counts the requests that wait for each model.
func (st *State) countCrowd() {
	if st.Limits.Node == "" {
		return
	}
	if st.crowd == nil {
		st.crowd = map[string]int{}
	}
	clear(st.crowd)
	for _, w := range st.Waiters {
		if !w.gone && w.Kind == WaitSlots {
			st.crowd[w.Key]++
		}
	}
}

// prefersNode compares instances of which at least one is of another node: one that has the model loaded is better, then one that
// surely fits, then the one whose node ranks higher for the conversation, unless it is far busier.
func (c *choice) prefersNode(in, other *Instance) bool {
	if in.isUnloadedPeer() != other.isUnloadedPeer() {
		return other.isUnloadedPeer()
	}
	if in.isUnloadedPeer() {
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

// maxSent bounds how many places of prompts are remembered of a remote's instance.
const maxSent = 8192

// sentPrompts remembers the beginnings of the prompts that a remote's instance was sent, since it probably still has their state.
// The oldest are forgotten first.
type sentPrompts struct {
	at   map[prefix.Sum]int // where in the ring it is
	ring []prefix.Sum
	next int
}

// add remembers a prompt.
func (m *sentPrompts) add(prompt prefix.Chain) {
	if m.at == nil {
		m.at = map[prefix.Sum]int{}
	}
	for _, link := range prompt[max(0, len(prompt)-maxSent):] {
		if len(m.ring) < maxSent {
			m.ring = append(m.ring, link.Sum)
		} else {
			if old := m.ring[m.next]; m.at[old] == m.next {
				delete(m.at, old)
			}
			m.ring[m.next] = link.Sum
		}
		m.at[link.Sum] = m.next
		m.next = (m.next + 1) % maxSent
	}
}

// common estimates how many tokens of a prompt were sent before.
func (m *sentPrompts) common(prompt prefix.Chain) int {
	if m == nil {
		return 0
	}
	for n := len(prompt); n > 0; n-- {
		if _, ok := m.at[prompt[n-1].Sum]; ok {
			return prompt.Weight(n) / bytesPerToken
		}
	}
	return 0
}

// isFarBusier reports whether an instance is so much busier than another that a prompt which it has had before is rather processed again
// there.
func (in *Instance) isFarBusier(other *Instance) bool {
	return in.InUse > 2*other.InUse+farBusier
}

// farBusier is the number of requests that one instance may always have more than another.
const farBusier = 4

// prefersRemote compares instances of remotes: one that has the model loaded is better, then one that was sent far more of the prompt
// before, unless it is far busier, then the less busy one, for its size.
func (c *choice) prefersRemote(in, other *Instance) bool {
	if in.Spec.Remote.Loaded != other.Spec.Remote.Loaded {
		return in.Spec.Remote.Loaded
	}
	more := in.sent.common(c.waiter.Prompt) - other.sent.common(c.waiter.Prompt)
	switch {
	case more > 0 && !in.isFarBusier(other):
		return true
	case more < 0 && !other.isFarBusier(in):
		return false
	default:
		return in.InUse*other.Spec.Parallel < other.InUse*in.Spec.Parallel
	}
}
