package schedule

import (
	"math/rand/v2"
	"testing"
	"time"
)

// keepBusy has a model asked for again and again while one of its slots is lent, until a waiter's lead is over.
func (p *play) keepBusy(spec *Spec, gen uint64) {
	p.t.Helper()
	for n := range uint64(minLead/time.Second) / 2 {
		p.on(asks(100+n, spec), Grant{100 + n, gen, 1, false})
		p.on(back(gen))
	}
}

// A model that is never idle gives way once a waiter's lead is over.
func TestOvertake_AModelThatIsAlwaysBusyGivesWay(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 1})
	two := specOf("a", 2)
	p.busy(two)
	p.on(user(1, "b"))
	p.keepBusy(two, 1)
	p.on(asks(2, two)) // it came too late: a drains
	p.on(asks(3, two))
	p.on(back(1), Stop{1, ForRoom})
	p.on(stopped(1), Spawn{"b", 2})
	p.on(ready(2), Loaded{2}, Grant{1, 2, 1, true})
	p.on(back(2), Stop{2, ForRoom})
	p.on(stopped(2), Spawn{"a", 3})
	p.on(ready(3), Loaded{3}, Grant{2, 3, 1, true}, Grant{3, 3, 1, true})
}

// What came before the lead was over is served as one batch, however long that takes; what came later isn't part of it.
func TestOvertake_ABatchIsWhatCameWithinTheLead(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 1})
	p.busy(specOf("a", 1))
	p.on(user(1, "b"))
	p.on(user(2, "a"))
	p.on(user(3, "b"))
	p.on(user(4, "a"))
	p.pass(minLead)
	p.on(user(5, "a"))
	p.on(back(1), Grant{2, 1, 1, false})
	p.pass(time.Minute)
	p.on(back(1), Grant{4, 1, 1, false})
	p.pass(time.Minute)
	p.on(back(1), Stop{1, ForRoom})
	p.on(stopped(1), Spawn{"b", 2})
	p.on(ready(2), Loaded{2}, Grant{1, 2, 1, true})
	p.on(user(6, "b"))
	p.on(back(2), Grant{3, 2, 1, true})
	p.on(back(2), Stop{2, ForRoom}) // 6 came more than the lead after 5
	p.on(stopped(2), Spawn{"a", 3})
	p.waits(5, 6)
}

// A model that takes long to load is waited for in larger batches, but not in any.
func TestOvertake_TheLeadFollowsTheLoadTime(t *testing.T) {
	t.Parallel()
	for load, want := range map[time.Duration]time.Duration{
		0:                10 * time.Second,
		time.Second:      10 * time.Second,
		5 * time.Second:  20 * time.Second,
		30 * time.Second: 2 * time.Minute,
		time.Hour:        2 * time.Minute,
	} {
		st := &State{Limits: Limits{Instances: 1}}
		Step(st, user(1, "a"), noon)
		Step(st, ready(1), noon.Add(load))
		if got := st.leadOf("a"); got != want {
			t.Errorf("a load took %v: the lead is %v, want %v", load, got, want)
		}
	}
}

// Small models that fit beside the others are loaded before a large one that doesn't, but not without end.
func TestOvertake_SmallLoadsBeforeALargeOne(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.busy(sized("a", 40))
	p.on(asks(1, sized("b", 100)))
	p.on(asks(2, sized("c", 60)), Spawn{"c", 2})
	p.on(ready(2), Loaded{2}, Grant{2, 2, 1, true})
	p.pass(minLead)
	p.on(back(2), Stop{2, ForRoom})
	p.on(asks(3, sized("d", 20))) // nothing more is loaded before b,
	p.on(user(4, "a"))            // and nothing more is lent of what is in its way
	p.on(stopped(2))
	p.on(back(1), Stop{1, ForRoom})
	p.on(stopped(1), Spawn{"b", 3})
	p.waits(1, 3, 4)
}

// A waiter's lead is its own: that of one that gave up doesn't count for the others.
func TestOvertake_CountsFromTheFirstThatStillWaits(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 1})
	two := specOf("a", 2)
	p.busy(two)
	p.on(user(1, "b"))
	p.pass(minLead - 2*time.Second)
	p.on(user(2, "b"))
	p.on(GaveUp{1}, Refuse{1, errCancelled})
	p.on(asks(200, two), Grant{200, 1, 1, false})
	p.on(back(1))
	p.pass(minLead)
	p.on(asks(3, two)) // a drains
	p.waits(2, 3)
}

// What is in the way can't always go at once. Meanwhile nothing else may take the room.
func TestOvertake_WhoIsLateHasTheNextRoom(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.on(asks(1, sized("a", 60)), Spawn{"a", 1})
	p.on(asks(2, sized("b", 100)))
	p.on(asks(3, sized("c", 20)), Spawn{"c", 2})
	p.pass(minLead)
	p.on(asks(4, sized("d", 20))) // there is room, but b is late
	p.on(ready(2), Loaded{2}, Grant{3, 2, 1, true})
	p.on(ready(1), Loaded{1}, Grant{1, 1, 1, true}) // now both drain
	p.on(asks(5, sized("a", 60)))
	p.on(back(1), Stop{1, ForRoom})
	p.on(back(2), Stop{2, ForRoom})
}

func TestOvertake_RestartsAreNotPutOffForEver(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.idle(autoRestart(sized("a", 60)))
	two := with(sized("b", 40), func(s *Spec) { s.Parallel = 2 })
	p.busy(two)
	p.on(Configured{Limits: Limits{Memory: 100}, Specs: map[uint64]*Spec{1: with(sized("a", 80), func(s *Spec) { s.ContextLength = 512 })}}, Stop{1, ForSettings})
	p.on(stopped(1)) // it now takes more than b leaves
	p.keepBusy(two, 2)
	p.on(asks(1, two))
	p.on(back(2), Stop{2, ForRoom})
	p.on(stopped(2), Spawn{"a", 3})
}

// A closed loop of clients, each of which holds its lease for a while and requests the next at once: every waiter is served
// after a bounded number of events, whatever the others do.
func TestOvertake_NobodyStarves(t *testing.T) {
	t.Parallel()
	longest := 0
	for seed := range uint64(100) {
		c := newCrowd(t, seed)
		for range 600 {
			c.turn()
		}
		longest = max(longest, c.longest)
	}
	t.Logf("the longest wait took %d turns", longest)
}

// No waiter starves if instances are unloaded, crash, hang, are signalled or get other settings during batches.
func TestOvertake_NobodyStarvesAmidTrouble(t *testing.T) {
	t.Parallel()
	longest := 0
	for seed := range uint64(100) {
		c := newCrowd(t, seed)
		for range 600 {
			if gens := c.gens(); len(gens) > 0 && c.rand.IntN(12) == 0 {
				c.trouble(gens[c.rand.IntN(len(gens))])
			}
			c.turn()
		}
		longest = max(longest, c.longest)
	}
	t.Logf("the longest wait took %d turns", longest)
}

// trouble befalls an instance.
func (c *crowd) trouble(gen uint64) {
	in := c.st.Find(gen)
	switch {
	case in == nil:
	case c.rand.IntN(5) == 0:
		c.asked++
		c.waiting[c.asked] = Waiter{ID: c.asked, Kind: WaitUnload, Demand: Demand{Instance: in.ID}}
		c.step(unloader(c.asked, in.ID))
	case c.rand.IntN(4) == 0:
		c.exit(gen)
	case c.rand.IntN(3) == 0:
		c.step(Condemned{gen, "it hangs"})
	case c.rand.IntN(2) == 0:
		c.step(EndAsked{gen})
	default:
		spec := with(in.Spec, func(s *Spec) { s.ContextLength = 256 * (1 + c.rand.IntN(2)) })
		c.step(Configured{c.st.Limits, map[uint64]*Spec{gen: spec}})
	}
}

// crowd is clients with habits. So many want the same model all the time that it is never idle by itself.
type crowd struct {
	*world
	longest int
	turns   int
	since   map[uint64]int // turn of the request, by waiter
}

const (
	faithful = 5 // clients of model a
	others   = 3 // clients of any other
	// longestWait is in turns, of which each is one event of a random client or process. A waiter can be passed by who comes
	// within its lead, and by maxOvertakes with priority; then what is in the way drains, ends, and its own loads.
	longestWait = 20 * (faithful + others)
	turnTime    = minLead / 16
)

func newCrowd(t *testing.T, seed uint64) *crowd {
	c := &crowd{world: newWorld(t, seed), since: map[uint64]int{}}
	c.rand = rand.New(rand.NewPCG(seed, 2))
	c.st.Limits = Limits{Instances: 1 + c.rand.IntN(2), Memory: int64(c.rand.IntN(2)) * 150}
	return c
}

// ask has a client ask for one of the models a to d.
func (c *crowd) ask(model int) {
	c.asked++
	spec := specOf(string(rune('a'+model)), 2)
	spec.Memory = 40 + 30*int64(model)
	w := asks(c.asked, spec)
	w.Waiter.Slots, w.Waiter.Priority = 1+c.rand.IntN(4)/3, c.rand.IntN(3) == 0
	c.waiting[c.asked], c.since[c.asked] = w.Waiter, c.turns
	c.step(w)
}

func (c *crowd) turn() {
	c.turns++
	c.now = c.now.Add(turnTime)
	ofA := 0
	for _, w := range c.waiting {
		if w.Key == "a" {
			ofA++
		}
	}
	for _, l := range c.leases {
		if in := c.st.Find(l.Gen); in != nil && in.Spec.Model.Key == "a" {
			ofA++
		}
	}
	rest := len(c.waiting) + len(c.leases) - ofA
	for range faithful - ofA {
		c.ask(0)
	}
	for range others - rest {
		c.ask(1 + c.rand.IntN(3))
	}
	gens := c.gens()
	switch n := c.rand.IntN(len(c.leases) + len(gens) + 1); {
	case n < len(c.leases):
		c.giveBack(n)
	case n == len(c.leases)+len(gens):
		c.pass()
	default:
		gen := gens[n-len(c.leases)]
		if in := c.st.Find(gen); c.alive[gen] {
			c.exit(gen)
		} else if in.Status.IsLoading() {
			c.step(ready(gen))
		}
	}
	for id, since := range c.since {
		if _, ok := c.waiting[id]; !ok {
			delete(c.since, id)
		} else if c.turns-since > longestWait {
			c.fail("waiter %d has waited for %d turns", id, c.turns-since)
		}
		c.longest = max(c.longest, c.turns-since)
	}
}
