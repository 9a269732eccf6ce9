package schedule

import (
	"testing"
	"time"
)

// renewed is other settings that need another process.
func renewed(spec *Spec) *Spec { return with(spec, func(s *Spec) { s.ContextLength *= 2 }) }

func configure(gen uint64, spec *Spec) Configured {
	return Configured{Specs: map[uint64]*Spec{gen: spec, 999: spec}} // of 999 nobody knows any more
}

func TestRenew_WhatIsNoConcernOfTheProcessCountsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.on(configure(1, renewed(specOf("a", 1))))
	policy := with(specOf("a", 1), func(s *Spec) { s.TTL, s.Pinned, s.AutoRestart, s.Memory, s.Recipe = time.Minute, true, true, 7, "new" })
	p.on(configure(1, policy))
	in := p.st.Instances[0]
	if in.Next != nil || in.Spec.TTL != time.Minute || !in.Spec.Pinned || !in.Spec.AutoRestart || in.Spec.Memory != 7 || in.Spec.Recipe != "new" {
		t.Errorf("settings %+v, next %+v", in.Spec, in.Next)
	}
	p.on(back(1))
	p.names("a")
}

func TestRenew_OnceItIsIdle(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.on(user(1, "a"))
	p.on(configure(1, renewed(specOf("a", 1))))
	p.on(back(1), Grant{1, 1, 1, false}) // waiters are served first
	p.on(back(1), Stop{1, ForSettings})
	p.on(user(2, "a"))
	p.on(stopped(1), Spawn{"a", 2})
	p.on(ready(2), Loaded{2}, Grant{2, 2, 1, true})
	if n := p.st.Instances[0].Spec.ContextLength; n != 512 {
		t.Errorf("context length %d, want the new one", n)
	}
}

func TestRenew_AtOnceIfItIsIdle(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a", 1))
	p.on(loader(1, "a"), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{Waiter: 1, Gen: 2, SawLoad: true})
	p.on(configure(2, renewed(specOf("a", 1))), Stop{2, ForSettings})
	p.on(loader(2, "a"), Spawn{"a:3", 3}) // the name stays taken
	p.on(stopped(2), Spawn{"a:2", 4})
}

func TestRenew_AnAlwaysBusyOneAfterSoManyRequests(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	two := specOf("a", 2)
	p.busy(two)
	p.on(configure(1, renewed(two)))
	for n := range uint64(maxOvertakes) {
		p.on(asks(100+n, two), Grant{100 + n, 1, 1, false})
		if n == 7 {
			p.on(configure(1, renewed(two))) // the same once more doesn't put it off
		}
		p.on(back(1))
	}
	p.on(asks(1, two))
	p.on(back(1), Stop{1, ForSettings})
	p.on(stopped(1), Spawn{"a", 2})
	p.on(ready(2), Loaded{2}, Grant{1, 2, 1, true})
}

func TestRenew_ALoadingOneWhenItHasBeenSeenReady(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(loader(1, "a"), Spawn{"a", 1})
	p.on(configure(1, renewed(specOf("a", 1))))
	p.on(ready(1), Loaded{1}, Grant{Waiter: 1, Gen: 1, SawLoad: true}, Stop{1, ForSettings})
	p.on(stopped(1), Spawn{"a", 2})
}

func TestRenew_NotWhatIsToGoAnyway(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.on(unloader(1, "a"))
	p.on(configure(1, renewed(specOf("a", 1))))
	p.on(back(1), Stop{1, ForRequest})
	p.on(stopped(1), Grant{Waiter: 1})
	p.names()
}

func TestRenew_ACrashBringsTheNewSettings(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(autoRestart(specOf("a", 1)))
	p.on(configure(1, renewed(autoRestart(specOf("a", 1)))))
	crash(p, 1, Spawn{"a", 2})
	if n := p.st.Instances[0].Spec.ContextLength; n != 512 {
		t.Errorf("context length %d, want the new one", n)
	}
}

func TestRenew_ItsPlaceIsKept(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.idle(sized("a", 40))
	larger := renewed(sized("a", 80))
	p.on(Configured{Limits: p.st.Limits, Specs: map[uint64]*Spec{1: larger}}, Stop{1, ForSettings})
	p.on(asks(1, sized("b", 60))) // there are 60, but a is to come back, and larger
	p.on(stopped(1), Spawn{"a", 2})
}

func TestRenew_ForWhichThereIsNoLongerRoomIsGivenUp(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.idle(sized("a", 40))
	larger := renewed(sized("a", 200))
	p.on(Configured{Limits: p.st.Limits, Specs: map[uint64]*Spec{1: larger}}, Stop{1, ForSettings})
	strict := asks(1, sized("a", 40))
	strict.Waiter.MayLoad = false
	p.on(strict)
	p.on(asks(2, sized("a", 40)))
	p.on(stopped(1), Refuse{1, notLoaded("a")}, Spawn{"a", 2})
}

func TestRenew_UnloadingWhatIsToComeBack(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a", 1))
	p.idle(autoRestart(specOf("b", 1)))
	p.on(configure(1, renewed(specOf("a", 1))), Stop{1, ForSettings})
	p.on(unloader(1, "a")) // its process still ends
	p.on(stopped(1), Grant{Waiter: 1})
	p.names("b")

	p.st.Failures = map[string]*Failure{"b": {Count: 3, At: p.now}}
	crash(p, 2)
	p.on(unloader(2, "b"), Grant{Waiter: 2})
	p.never()
	p.on(unloader(3, "b"), Refuse{3, UnknownInstance("b")})
}

func TestRenew_UnloadingTellsWhoAskedForTheLoad(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.on(loader(1, "b"), Spawn{"b", 2})
	p.on(unloader(2, "a"))
	p.on(starved(2)) // it waits for a's end
	p.on(unloader(3, "b"), Refuse{1, unloadedWhileLoading("b")}, Grant{Waiter: 3})
}

// Pinning an instance cancels its eviction, and nothing else.
func TestRenew_WhatPinningCancels(t *testing.T) {
	t.Parallel()
	t.Run("an eviction", func(t *testing.T) {
		t.Parallel()
		p := newPlay(t, Limits{Instances: 1})
		p.busy(specOf("a", 1))
		p.on(user(1, "b"))
		p.pass(maxLead)
		p.on(Tick{})
		p.on(Configured{Limits: Limits{Instances: 2}, Specs: map[uint64]*Spec{1: pinned(specOf("a", 1))}}, Spawn{"b", 2})
		p.on(back(1))
	})
	t.Run("not of an instance that isn't pinned", func(t *testing.T) {
		t.Parallel()
		p := newPlay(t, Limits{Instances: 1})
		p.busy(specOf("a", 1))
		p.on(user(1, "b"))
		p.pass(maxLead)
		p.on(Tick{})
		p.on(Configured{Limits: Limits{Instances: 1}, Specs: map[uint64]*Spec{1: specOf("a", 1)}})
		p.on(back(1), Stop{1, ForRoom})
	})
	t.Run("not an unload", func(t *testing.T) {
		t.Parallel()
		p := newPlay(t, Limits{})
		p.busy(specOf("a", 1))
		p.on(unloader(1, "a"))
		p.on(configure(1, pinned(specOf("a", 1))))
		p.on(back(1), Stop{1, ForRequest})
	})
	t.Run("not a load", func(t *testing.T) {
		t.Parallel()
		p := newPlay(t, Limits{})
		p.on(user(1, "a"), Spawn{"a", 1})
		p.on(configure(1, pinned(specOf("a", 1))))
		p.on(ready(1), Loaded{1}, Grant{1, 1, 1, true})
	})
}
