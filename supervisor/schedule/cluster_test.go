package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

// peerSpec is a model on another node.
func peerSpec(node, key string, parallel int, isLoaded bool) *Spec {
	return with(remoteSpec(node, key, 0, parallel), func(s *Spec) { s.Remote.Peer, s.Remote.Loaded = true, isLoaded })
}

// clustered is a play on the node n1.
func clustered(t *testing.T) *play { return newPlay(t, Limits{Node: "n1"}) }

// ranking returns a key that ranks nodes in an order.
func ranking(nodes ...string) string {
	for i := 0; ; i++ {
		key := fmt.Sprint("k", i)
		of := AffinityOf([]byte(key))
		if slices.IsSortedFunc(nodes, func(a, b string) int { return cmp.Compare(rank(b, of), rank(a, of)) }) {
			return key
		}
	}
}

func talk(id uint64, key string, head string) Asked {
	asked := user(id, key)
	asked.Waiter.Affinity = AffinityOf([]byte(head))
	return asked
}

func TestCluster_AModelIsLoadedWhereItRanksFirst(t *testing.T) {
	t.Parallel()
	p := clustered(t)
	mine, theirs := ranking("n1", "n2", "n3"), ranking("n3", "n1", "n2")
	p.on(placed("n2", peerSpec("n2", mine, 2, false), peerSpec("n2", theirs, 2, false)))
	p.on(placed("n3", peerSpec("n3", mine, 2, false), peerSpec("n3", theirs, 2, false)))
	p.on(user(1, mine), Spawn{mine, 5})
	p.on(user(2, mine)) // it waits for the load here
	p.on(ready(5), Loaded{5}, Grant{1, 5, 1, true})
	p.on(back(5), Grant{2, 5, 1, true})
	at := p.st.ByID("n3/" + theirs)
	p.on(user(3, theirs), Grant{3, at.Gen, 1, false})
}

func TestCluster_LoadsHereIfTheFirstNodeIsAway(t *testing.T) {
	t.Parallel()
	p := clustered(t)
	key := ranking("n2", "n1", "n3")
	p.on(placed("n2", peerSpec("n2", key, 2, false)))
	p.on(placed("n3", peerSpec("n3", key, 2, false)))
	p.on(user(1, key), Grant{1, 1, 1, false})
	p.on(p.st.away("n2", "connection refused"))
	p.on(back(1))
	p.on(user(2, key), Spawn{key, 3})
}

func TestCluster_AConversationStaysOnItsNode(t *testing.T) {
	t.Parallel()
	p := clustered(t)
	p.on(placed("n2", peerSpec("n2", "a", 2, true)))
	p.on(placed("n3", peerSpec("n3", "a", 2, true)))
	for id := uint64(1); id < 6; id++ {
		p.on(talk(id, "a", ranking("n3", "n2")), Grant{id, 2, 1, false})
		p.on(back(2))
		p.on(talk(id+10, "a", ranking("n2", "n3")), Grant{id + 10, 1, 1, false})
		p.on(back(1))
	}
	p.on(talk(21, "a", ranking("n3", "n2")), Grant{21, 2, 1, false})
	p.on(talk(22, "a", ranking("n3", "n2")), Grant{22, 2, 1, false})
	p.on(talk(23, "a", ranking("n3", "n2")), Grant{23, 1, 1, false}) // n3 is busy
}

// A further node loads the model only if more requests wait than the instances have slots.
func TestCluster_ACrowdGetsAnotherInstance(t *testing.T) {
	t.Parallel()
	p := clustered(t)
	p.busy(specOf("a", 1))
	p.on(placed("n2", peerSpec("n2", "a", 2, false)))
	other := p.st.ByID("n2/a").Gen
	p.on(user(1, "a"))
	p.on(user(2, "a"), Grant{1, other, 1, false})

	p = clustered(t)
	p.on(placed("n2", peerSpec("n2", "b", 1, true)))
	p.on(user(1, "b"), Grant{1, 1, 1, false})
	p.on(user(2, "b"))
	p.on(user(3, "b"), Spawn{"b", 2})
}

// This machine is a node like the others.
func TestCluster_ThisMachineRanksAmongTheNodes(t *testing.T) {
	t.Parallel()
	p := clustered(t)
	gen := p.idle(specOf("a", 2))
	p.on(placed("n2", peerSpec("n2", "a", 2, true)))
	other := p.st.ByID("n2/a").Gen
	p.on(talk(1, "a", ranking("n1", "n2")), Grant{1, gen, 1, false})
	p.on(talk(2, "a", ranking("n2", "n1")), Grant{2, other, 1, false})
	p.on(talk(3, "a", ranking("n2", "n1")), Grant{3, other, 1, false})
	p.on(user(4, "a"), Grant{4, gen, 1, false}) // any node will do: the less busy one
}

func TestCluster_ARequestOfAnotherNodeStaysHere(t *testing.T) {
	t.Parallel()
	p := clustered(t)
	p.on(placed("n2", peerSpec("n2", "a", 2, true)))
	local := user(1, "a")
	local.Waiter.Here = true
	p.on(local, Spawn{"a", 2})
	local = user(2, "b")
	local.Waiter.Here, local.Waiter.MayLoad = true, false
	p.on(local, Refuse{2, notLoaded("b")})
}

// A model that is loaded on no other node is loaded on one of them, and not here, if it has no room here.
func TestCluster_AModelWithoutRoomHere(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Node: "n1", Memory: 10})
	key := ranking("n1", "n2")
	p.on(placed("n2", peerSpec("n2", key, 2, false)))
	big := user(1, key)
	big.Waiter.Spec = with(specOf(key, 1), func(s *Spec) { s.Memory = 20 })
	p.on(big, Grant{1, 1, 1, false})
}

// The context of a model that isn't loaded is unknown, which doesn't make it longer than others.
func TestCluster_AnUnloadedModelHasNoContext(t *testing.T) {
	t.Parallel()
	p := clustered(t)
	gen := p.idle(specOf("a", 2))
	p.on(placed("n2", peerSpec("n2", "a", 2, false)))
	long := talk(1, "a", ranking("n2", "n1"))
	long.Waiter.Context = ContextNeed{Likely: 1000, Safe: 4000}
	p.on(long, Grant{1, gen, 1, false})
}

// Nodes that rank by themselves agree, and only what ranks a node first moves when it goes.
func TestRank_IsEvenAndStable(t *testing.T) {
	t.Parallel()
	nodes := []string{"10.0.0.1:8443", "10.0.0.2:8443", "10.0.0.3:8443"}
	best := func(of uint64, among []string) (best string) {
		for _, n := range among {
			if best == "" || rank(n, of) > rank(best, of) {
				best = n
			}
		}
		return best
	}
	const number = 30_000
	counts, moved := map[string]int{}, 0
	for i := range number {
		of := AffinityOf(fmt.Append(nil, i))
		n := best(of, nodes)
		counts[n]++
		if n != nodes[2] && best(of, nodes[:2]) != n {
			moved++
		}
	}
	for _, n := range nodes {
		if counts[n] < number*3/10 || counts[n] > number*37/100 {
			t.Errorf("%s is first for %d of %d", n, counts[n], number)
		}
	}
	if moved > 0 {
		t.Errorf("%d have moved without need", moved)
	}
}
