package schedule

import "testing"

func TestEvict_TheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 3})
	p.idle(specOf("a", 1))
	p.idle(specOf("b", 1))
	p.idle(specOf("c", 1))
	p.on(user(1, "a"), Grant{1, 1, 1, false})
	p.on(back(1))
	p.on(user(2, "d"), Stop{2, ForRoom})
	p.on(user(3, "c"), Grant{3, 3, 1, false}) // the others go on
	p.on(stopped(2), Spawn{"d", 4})
	p.names("a", "c", "d")
}

func TestEvict_NothingThatIsBusyLoadingOrPinned(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 3})
	p.idle(pinned(specOf("a", 1)))
	p.busy(specOf("b", 1))
	p.on(loader(1, "c"), Spawn{"c", 3})
	p.on(GaveUp{1}, Refuse{1, errCancelled}) // nobody waits for it any more
	p.on(user(2, "d"))
	p.on(ready(3), Loaded{3}, Stop{3, ForRoom}) // from now on it is idle
	p.on(stopped(3), Spawn{"d", 4})
}

func TestEvict_ABusyOneOnceItIsIdleUnlessItIsWanted(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 1})
	p.busy(specOf("a", 1))
	p.on(user(1, "b"))
	p.on(user(2, "a"))
	p.on(back(1), Grant{2, 1, 1, false})
	p.on(back(1), Stop{1, ForRoom})
	p.on(user(3, "a")) // it has to wait until the other was served
	p.on(stopped(1), Spawn{"b", 2})
	p.on(ready(2), Loaded{2}, Grant{1, 2, 1, true})
	p.on(back(2), Stop{2, ForRoom})
	p.on(stopped(2), Spawn{"a", 3})
}

func TestEvict_ByMemoryNoMoreThanItTakes(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.idle(sized("a", 10))
	p.idle(sized("b", 60))
	p.idle(sized("c", 20))
	// The least recently used are a and b; without b there is room, with a in it.
	p.on(asks(1, sized("d", 60)), Stop{2, ForRoom})
	p.on(stopped(2), Spawn{"d", 4})
	p.names("a", "c", "d")
}

func TestEvict_SeveralAtATime(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100, Instances: 9})
	p.idle(sized("a", 30))
	p.idle(sized("b", 30))
	p.idle(sized("c", 30))
	p.on(asks(1, sized("d", 60)), Stop{1, ForRoom}, Stop{2, ForRoom})
	p.on(stopped(2))
	p.on(stopped(1), Spawn{"d", 4})
}

func TestEvict_NotWhenItWouldNotBeEnough(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.idle(sized("a", 30))
	p.busy(sized("b", 60))
	p.on(asks(1, sized("c", 80))) // a alone won't do, so it stays until b is done
	p.on(user(2, "a"), Grant{2, 1, 1, false})
	p.on(back(2)) // b: its end alone would do, but a is busy
	p.st.Waiters[0].Overtaken = 0
	p.on(back(1), Stop{2, ForRoom}, Stop{1, ForRoom})
}

func TestEvict_OneLoadForAllWhoWaitForIt(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 2})
	p.idle(specOf("a", 1))
	p.idle(specOf("b", 1))
	p.on(user(1, "c"), Stop{1, ForRoom})
	p.on(user(2, "c")) // the same load will serve it: b stays
	p.on(user(3, "c"))
	p.on(stopped(1), Spawn{"c", 3})
	p.on(ready(3), Loaded{3}, Grant{1, 3, 1, true})
}

func TestEvict_RoomThatWasMadeIsKept(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.idle(sized("a", 60))
	p.on(asks(1, sized("b", 80)), Stop{1, ForRoom})
	p.on(asks(2, sized("c", 40)))                // there are 40, but b was first
	p.on(asks(3, sized("d", 20)), Spawn{"d", 2}) // this leaves b its room
	p.on(stopped(1), Spawn{"b", 3})              //
	p.on(ready(3), Loaded{3}, Grant{1, 3, 1, true})
	p.on(back(3), Stop{3, ForRoom})
	p.on(stopped(3), Spawn{"c", 4})
}

func TestEvict_WhatWasOnlyToBeSeenLoaded(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 1})
	p.on(loader(1, "a"), Spawn{"a", 1})
	p.on(user(2, "b"))
	p.on(ready(1), Loaded{1}, Grant{Waiter: 1, Gen: 1, SawLoad: true}, Stop{1, ForRoom})
	p.on(stopped(1), Spawn{"b", 2})
}

func TestEvict_WhenLessIsAllowed(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a", 1))
	p.idle(pinned(specOf("b", 1)))
	p.idle(specOf("c", 1))
	p.idle(specOf("d", 1))
	p.on(user(1, "a"), Grant{1, 1, 1, false})
	p.on(Configured{Limits: Limits{Instances: 1}}, Stop{3, ForRoom}, Stop{4, ForRoom}) // a is busy, b pinned
	p.on(back(1))                                                                      // used last
	p.on(user(2, "b"), Grant{2, 2, 1, false}, Stop{1, ForRoom})
}

// A pin counts at once: also for an instance that is draining to be evicted, and for one that is to be started again.
func TestEvict_NotWhatIsPinnedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Spec){
		"the same process": func(s *Spec) { s.Pinned = true },
		"another process":  func(s *Spec) { s.Pinned, s.ContextLength = true, 512 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := Limits{Instances: 1}
			p := newPlay(t, limits)
			two := specOf("a", 2)
			gen := p.busy(two)
			p.on(user(1, "b"))
			p.pass(minLead)
			p.on(asks(2, two)) // a drains
			spec := with(two, change)
			p.on(Configured{limits, map[uint64]*Spec{gen: spec}}, Refuse{1, neverFits(specOf("b", 1), &State{Limits: limits}, load{instances: 1})}, Grant{2, gen, 1, false})
			p.waits()
		})
	}
}

// Once a waiter's lead is over, an instance that is idle goes before one that is busy.
func TestEvict_AnIdleOneRatherThanABusyOne(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 2})
	p.busy(specOf("a", 1)) // it was used less recently
	p.busy(specOf("b", 1))
	p.on(user(1, "c"))
	p.pass(maxLead)
	p.on(back(2), Stop{2, ForRoom})
	p.on(stopped(2), Spawn{"c", 3})
	p.names("a", "c")
}
