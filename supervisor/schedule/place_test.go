package schedule

import (
	"testing"
	"time"
)

// remoteSpec is a model on a remote.
// isOn reports whether an instance is of a remote.
func isOn(in *Instance, remote string) bool { return in.IsRemote() && in.Spec.Remote.Name == remote }

func remoteSpec(remote, key string, prefer, parallel int) *Spec {
	return with(specOf(key, parallel), func(s *Spec) {
		s.Engine, s.ContextLength = "", 0
		s.Remote = &Remote{Name: remote, Model: "the " + key, Prefer: prefer, Loaded: true}
	})
}

// stranger asks for a model that isn't on this machine.
func stranger(id uint64, key string) Asked {
	asked := user(id, key)
	asked.Waiter.MayLoad = false
	asked.Waiter.Spec = remoteSpec("", key, 0, 1)
	return asked
}

func placed(remote string, specs ...*Spec) Placed { return Placed{Remote: remote, Specs: specs} }

// away places a remote with the models that it has, as one that can't be reached.
func (st *State) away(remote, why string) Placed {
	ev := Placed{Remote: remote, Away: why}
	for _, in := range st.Instances {
		if isOn(in, remote) {
			ev.Specs = append(ev.Specs, in.Spec)
		}
	}
	return ev
}

func TestPlace_ServesFromARemoteWithoutALoad(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 1, Memory: 10})
	p.on(placed("r", remoteSpec("r", "a", 1, 2)))
	p.names("r/a")
	p.on(stranger(1, "a"), Grant{1, 1, 1, false})
	p.on(stranger(2, "a"), Grant{2, 1, 1, false})
	p.on(stranger(3, "a")) // it waits for a slot
	p.on(back(1), Grant{3, 1, 1, false})
	p.on(placed("r")) // what is under way goes on
	p.names()
	p.on(back(1))
	p.on(stranger(4, "a"), Refuse{4, notThere("a")})
}

func TestPlace_GoesByTheNumbers(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(placed("slow", remoteSpec("slow", "a", -1, 1)))
	p.on(placed("fast", remoteSpec("fast", "a", -2, 1)))
	p.on(user(1, "a"), Grant{1, 2, 1, false})
	p.on(user(2, "a"), Grant{2, 1, 1, false})
	p.on(user(3, "a"), Spawn{"a", 3}) // all are busy, so this machine takes it
	p.on(back(2), Grant{3, 2, 1, false})
	p.on(ready(3), Loaded{3})
	p.on(user(4, "a"), Grant{4, 3, 1, false})
	p.on(back(1))
	p.on(back(2))
	p.on(user(5, "a"), Grant{5, 2, 1, false})
}

func TestPlace_LoadsHereInTheBackgroundIfThisMachineComesFirst(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(placed("r", remoteSpec("r", "a", 1, 2)))
	p.on(user(1, "a"), Grant{1, 1, 1, false}, Spawn{"a", 2})
	p.on(user(2, "a"), Grant{2, 1, 1, false}) // while it loads
	p.on(ready(2), Loaded{2})
	p.on(back(1))
	p.on(user(3, "a"), Grant{3, 2, 1, false})
	p.on(user(4, "a"), Grant{4, 1, 1, false}) // this machine is busy
}

func TestPlace_DoesWithoutTheLoadThatFails(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(placed("r", remoteSpec("r", "a", 1, 2)))
	p.on(user(1, "a"), Grant{1, 1, 1, false}, Spawn{"a", 2})
	p.on(died(2))
	p.on(user(2, "a"), Grant{2, 1, 1, false}, Spawn{"a", 3})
	p.on(died(3))
	p.on(back(1))
	p.on(user(3, "a"), Grant{3, 1, 1, false}, Spawn{"a", 4})
	p.on(died(4))
	p.at(back(1))
	p.at(user(4, "a"), Grant{4, 1, 1, false}) // it has failed three times in a row
}

func TestPlace_AnAwayRemoteIsPassedOver(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(placed("r", remoteSpec("r", "a", -1, 1)))
	p.on(placed("s", remoteSpec("s", "a", 1, 1)))
	p.on(stranger(1, "a"), Grant{1, 1, 1, false})
	p.on(p.st.away("r", "connection refused"))
	p.on(back(1))
	p.on(stranger(2, "a"), Grant{2, 2, 1, false})
	p.on(stranger(3, "a")) // s is busy, r is away
	p.on(placed("r", remoteSpec("r", "a", -1, 1)), Grant{3, 1, 1, false})
	p.on(p.st.away("r", "connection refused"))
	p.on(p.st.away("s", "no route to host"))
	p.at(stranger(4, "a"))
	named := stranger(5, "a")
	named.Waiter.Instance = "s/a"
	p.at(named)
	mine := user(6, "a")
	mine.Waiter.Instance = "s/a"
	p.at(mine)
	p.due(patience, Refuse{4, unreachable(p.st.ByID("r/a"))}, Refuse{5, unreachable(p.st.ByID("s/a"))},
		Refuse{6, unreachable(p.st.ByID("s/a"))}) // who names a place gets no other
}

// A waiter whose only place goes away is served if it is back soon, however long it has waited before, and refused otherwise.
func TestPlace_WaitersAreRefusedWhenTheirOnlyPlaceStaysAway(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(placed("r", remoteSpec("r", "a", 1, 2)))
	p.on(stranger(1, "a"), Grant{1, 1, 1, false})
	p.on(stranger(2, "a"), Grant{2, 1, 1, false})
	p.on(stranger(3, "a"))
	p.on(stranger(4, "a"))
	p.pass(time.Hour)
	p.at(p.st.away("r", "connection refused"))
	p.at(back(1))
	p.at(back(1))
	p.pass(patience - time.Millisecond)
	p.at(p.st.away("r", "connection reset"))
	p.at(placed("r", remoteSpec("r", "a", 1, 1)), Grant{3, 1, 1, false})
	p.at(p.st.away("r", "connection refused"))
	p.due(patience, Refuse{4, unreachable(p.st.ByID("r/a"))})
	p.never()
}

// Only who can use nothing else waits for a remote that is away.
func TestPlace_NobodyWaitsForOneThatIsAwayBesideAnother(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(placed("r", remoteSpec("r", "a", 1, 1)))
	p.on(p.st.away("r", "connection refused"))
	p.on(user(1, "a"), Spawn{"a", 2})
	p.on(placed("s", remoteSpec("s", "b", 1, 1)))
	p.on(stranger(2, "b"), Grant{2, 3, 1, false})
	p.on(Throttled{3, 1, p.now.Add(time.Minute), ""})
	p.at(back(3))
	p.at(stranger(3, "b"), Refuse{3, heldBack(p.st.ByID("s/b"), p.now)})
}

func TestPlace_ATurnedAwayRequestLowersTheSlotsForATime(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(placed("r", remoteSpec("r", "a", 1, 3)))
	p.on(stranger(1, "a"), Grant{1, 1, 1, false})
	p.on(stranger(2, "a"), Grant{2, 1, 1, false})
	p.at(Throttled{1, 1, p.now.Add(4 * time.Second), ""})
	p.at(back(1)) // the one that was turned away
	p.at(stranger(3, "a"))
	p.on(back(1), Grant{3, 1, 1, false})
	p.on(stranger(4, "a"))
	p.due(2*time.Second, Grant{4, 1, 1, false}) // all slots are there again
	p.never()
}

func TestPlace_AWaitThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(placed("r", remoteSpec("r", "a", 1, 3)))
	p.on(stranger(1, "a"), Grant{1, 1, 1, false})
	p.at(Throttled{1, 1, p.now.Add(time.Minute), ""})
	p.at(back(1))
	p.on(stranger(2, "a"), Refuse{2, Error{Kind: QueueFull, RetryAfter: 59 * time.Second, Message: "The remote r takes no more requests for the model a at the moment. Try again in 59s."}})
	p.on(placed("s", remoteSpec("s", "a", 2, 1)))
	p.on(stranger(3, "a"), Grant{3, 2, 1, false})
}

func TestPlace_IsNeitherEvictedNorUnloadedNorCounted(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 1, Memory: 100})
	p.on(placed("r", remoteSpec("r", "x", 1, 1), remoteSpec("r", "y", 1, 1)))
	p.idle(sized("a", 100))
	p.on(user(1, "b"), Stop{3, ForRoom})
	p.on(stopped(3), Spawn{"b", 4})
	p.on(unloader(2, "r/x"), Refuse{2, notOurs(p.st.ByID("r/x"))})
	p.on(Configured{Limits: Limits{Instances: 1, Memory: 1}})
	p.names("r/x", "r/y", "b")
	p.on(Closed{}, Refuse{1, ErrClosing}, Stop{4, ForClosing})
	p.on(stopped(4))
	p.names()
}

func TestPlace_APreloadNeedsThisMachine(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(placed("r", remoteSpec("r", "a", -1, 1)))
	p.on(Asked{Waiter{ID: 1, Kind: WaitLoaded, Demand: Demand{Key: "a", Spec: specOf("a", 1), MayLoad: true}}}, Spawn{"a", 2})
}

func TestPlace_AConversationStaysWhereItIs(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(placed("r", remoteSpec("r", "a", 1, 64)))
	p.on(placed("s", remoteSpec("s", "a", 1, 64)))
	says := func(id uint64, head string) Asked {
		asked := stranger(id, "a")
		asked.Waiter.Affinity = AffinityOf([]byte(head))
		return asked
	}
	ada, bob := ranking("r", "s"), ranking("s", "r")
	p.on(says(1, ada), Grant{1, 1, 1, false})
	p.on(says(2, bob), Grant{2, 2, 1, false})
	p.on(back(1))
	p.on(back(2))
	p.on(says(3, bob), Grant{3, 2, 1, false})
	p.on(says(4, ada), Grant{4, 1, 1, false})
	p.on(back(2))
	p.on(back(1))
	var id uint64 = 4
	for range farBusier + 1 { // the conversation goes to the same place, until that is far busier
		id++
		p.on(says(id, ada), Grant{id, 1, 1, false})
	}
	id++
	p.on(says(id, ada), Grant{id, 2, 1, false})
}

func TestPlace_NoneThatTheRequestHasPassedIsTaken(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	through := func(remote string, prefer int, ids ...string) Placed {
		return placed(remote, with(remoteSpec(remote, "a", prefer, 5), func(s *Spec) { s.Remote.Via = ids }))
	}
	p.on(through("first", 1, "one", "two"))
	p.on(through("second", 2, "two"))
	p.on(through("third", 3))
	passed := func(id uint64, ids ...string) Asked {
		asked := stranger(id, "a")
		asked.Waiter.Hops = ids
		return asked
	}
	p.on(passed(1), Grant{1, 1, 1, false})
	p.on(passed(2, "one"), Grant{2, 2, 1, false})
	p.on(passed(3, "none", "two"), Grant{3, 3, 1, false})
}
