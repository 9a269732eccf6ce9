package schedule

import (
	"testing"
	"time"
)

func TestQueue_IsBoundedForEachModel(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Queue: 2})
	p.busy(specOf("a", 1))
	p.on(user(1, "a"))
	p.pass(8 * time.Second)
	p.on(user(2, "a"))
	full := Error{Kind: QueueFull, RetryAfter: 17 * time.Second, Message: "2 requests are already waiting for the model a, which is the limit. Try again in 17s."}
	p.on(user(3, "a"), Refuse{3, full})
	p.on(user(4, "b"), Spawn{"b", 2}) // another model's queue
	p.on(loader(5, "a"), Spawn{"a:2", 3})
	p.on(GaveUp{1}, Refuse{1, errCancelled})
	p.on(user(6, "a"))
	p.on(Configured{Limits: Limits{Queue: 1}}) // who waits already stays
	p.waits(2, 4, 5, 6)
}

func TestQueue_WhoIsServedAtOnceNeverCounts(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Queue: 1})
	p.idle(specOf("a", 1))
	p.on(user(1, "a"), Grant{1, 1, 1, false})
	p.on(user(2, "a"))
	p.on(back(1), Grant{2, 1, 1, false})
	p.on(user(3, "a"))
}

// first is a user with priority.
func first(id uint64, key string) Asked {
	asked := user(id, key)
	asked.Waiter.Priority = true
	return asked
}

func TestQueue_PriorityGoesFirstInOrderOfArrival(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.busy(specOf("b", 1))
	p.on(user(1, "a"))
	p.on(user(2, "b"))
	p.on(user(3, "a"))
	p.on(first(4, "a"))
	p.on(first(5, "a"))
	p.waits(4, 5, 1, 2, 3)
	p.on(first(6, "c"), Spawn{"c", 3}) // nobody is before it
	p.waits(4, 5, 1, 2, 3, 6)
	p.on(back(1), Grant{4, 1, 1, false})
}

func TestQueue_PriorityIsBounded(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.on(user(1, "a"))
	for n := range uint64(maxOvertakes) {
		p.on(first(100+n, "a"))
		p.on(back(1), Grant{100 + n, 1, 1, false})
	}
	p.on(first(2, "a"))
	p.waits(1, 2)
	p.on(back(1), Grant{1, 1, 1, false})
}

func TestQueue_PriorityDoesNotPassALoad(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 1})
	p.busy(specOf("b", 1))
	p.on(loader(1, "a"))
	p.on(first(2, "a"))
	p.waits(1, 2)
}

// of is a user of an owner.
func of(owner string, id uint64, key string) Asked {
	asked := user(id, key)
	asked.Waiter.Owner = owner
	return asked
}

func TestQueue_OwnersTakeTurns(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.busy(specOf("b", 1))
	for n := range uint64(3) {
		p.on(of("ann", 10+n, "a"))
	}
	p.on(of("cat", 30, "b")) // keeps its place
	p.on(of("ann", 13, "a"))
	p.on(of("bob", 20, "a"))
	p.waits(10, 20, 11, 30, 12, 13)
	p.on(of("bob", 21, "a"))
	p.waits(10, 20, 11, 30, 21, 12, 13)
	p.on(of("eve", 40, "a"))
	p.waits(10, 20, 40, 30, 11, 21, 12, 13)
	p.on(of("ann", 14, "a"))
	p.on(of("cat", 31, "b"))
	p.waits(10, 20, 40, 30, 11, 21, 12, 13, 14, 31)
	p.on(back(1), Grant{10, 1, 1, false})
	p.on(of("eve", 41, "a"))
	p.waits(20, 40, 30, 11, 21, 12, 41, 13, 31, 14)
}

// An owner with many requests delays another owner's request by at most one turn each.
func TestQueue_TurnsStarveNobody(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	for n := range uint64(500) {
		p.on(of("ann", 1000+n, "a"))
	}
	for n := range uint64(100) {
		p.on(of("bob", 1+n, "a"))
		p.on(back(1), Grant{1000 + n, 1, 1, false})
		p.on(back(1), Grant{1 + n, 1, 1, false})
	}
}

func TestQueue_TurnsLeavePriorityFirst(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.on(of("ann", 1, "a"))
	p.on(of("ann", 2, "a"))
	p.on(first(3, "a"))
	p.on(loader(4, "c"), Spawn{"c", 2})
	p.on(of("bob", 5, "a"))
	p.waits(3, 1, 5, 4, 2)
}

func TestQueue_IsSharedFairly(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Queue: 4})
	p.busy(specOf("a", 1))
	full := queueFull("a", 4, 3*time.Second) // one was served, a second after it came
	for n := range uint64(4) {
		p.at(of("ann", 10+n, "a"))
	}
	p.at(of("ann", 14, "a"), Refuse{14, full})
	p.at(of("bob", 20, "a"), Refuse{13, full})
	p.at(of("bob", 21, "a"), Refuse{12, full})
	p.at(of("bob", 22, "a"), Refuse{22, full}) // as many as the other
	p.at(of("ann", 15, "a"), Refuse{15, full})
	p.at(of("eve", 30, "a"), Refuse{21, full})
	p.at(of("eve", 31, "a"), Refuse{31, full}) // nobody has more than two
	p.waits(10, 20, 30, 11)
}

// A request with priority counts for its owner, and is refused when its owner has as many as anybody else.
func TestQueue_PriorityRefusesNobodyWithAsMany(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Queue: 3})
	p.busy(specOf("a", 1))
	p.on(user(1, "b"), Spawn{"b", 2}) // another model's queue
	p.at(of("ann", 10, "a"))
	p.at(of("ann", 11, "a"))
	p.at(of("bob", 20, "a"))
	asked := first(21, "a")
	asked.Waiter.Owner = "bob"
	p.at(asked, Refuse{21, queueFull("a", 3, 2*time.Second)})
	p.waits(1, 10, 20, 11)
}

// Lower limits refuse nobody who waits, also when another request is served at once.
func TestQueue_WhoIsServedAtOnceRefusesNobody(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.on(loader(1, "a"), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{Waiter: 1, Gen: 2, SawLoad: true})
	for id := range uint64(3) {
		asked := of("ann", 10+id, "a")
		asked.Waiter.Instance = "a"
		p.on(asked)
	}
	p.on(Configured{Limits: Limits{Queue: 1}})
	p.on(of("bob", 20, "a"), Grant{20, 2, 1, false})
	p.waits(10, 11, 12)
}
