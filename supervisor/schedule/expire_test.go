package schedule

import (
	"testing"
	"time"
)

func TestExpire_FromTheEndOfTheLastRequest(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	spec := ttl(with(specOf("a", 2), func(s *Spec) { s.Parallel = 2 }), time.Minute)
	p.busy(spec)
	p.on(asks(1, spec), Grant{1, 1, 1, false})
	p.pass(time.Hour)
	p.on(Tick{}) // in use
	p.never()
	p.on(back(1))
	p.pass(time.Hour)
	p.on(back(1))
	p.due(time.Minute, Stop{1, ForIdleness})
	p.never()
	p.on(stopped(1))
	p.names()
}

func TestExpire_ANewRequestBeginsAnew(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(ttl(specOf("a", 1), time.Minute))
	p.pass(50 * time.Second)
	p.on(user(1, "a"), Grant{1, 1, 1, false})
	p.on(back(1))
	p.pass(58 * time.Second)
	p.on(Tick{})
	p.due(time.Second, Stop{1, ForIdleness})
}

func TestExpire_ZeroIsNever(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a", 1))
	p.never()
	p.pass(1000 * time.Hour)
	p.on(Tick{})
	p.names("a")
}

func TestExpire_WhatNobodyHasUsedYetCountsFromWhenItWasReady(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(loads(1, ttl(specOf("a", 1), time.Minute)), Spawn{"a", 1})
	p.never() // a load takes as long as it takes
	p.on(ready(1), Loaded{1}, Grant{Waiter: 1, Gen: 1, SawLoad: true})
	p.due(time.Minute, Stop{1, ForIdleness})
}

func TestExpire_EachInstanceForItself(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(ttl(specOf("a", 1), time.Minute))
	p.idle(ttl(specOf("b", 1), time.Hour))
	p.idle(ttl(specOf("c", 1), 5*time.Minute))
	p.due(54*time.Second, Stop{1, ForIdleness})
	p.on(stopped(1))
	p.due(5*time.Minute-55*time.Second, Stop{3, ForIdleness})
	p.due(time.Hour-5*time.Minute-3*time.Second, Stop{2, ForIdleness})
}

func TestExpire_AShorterTimeToLiveCountsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	a := p.idle(specOf("a", 1))
	p.pass(10 * time.Minute)
	p.on(Configured{Specs: map[uint64]*Spec{a: ttl(specOf("a", 1), time.Hour)}})
	p.on(Configured{Specs: map[uint64]*Spec{a: ttl(specOf("a", 1), time.Minute)}}, Stop{a, ForIdleness})
}

func TestExpire_WhoeverComesMeanwhileGetsANewOne(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(ttl(specOf("a", 1), time.Minute))
	p.due(time.Minute, Stop{1, ForIdleness})
	p.on(user(1, "a"))
	p.on(stopped(1), Spawn{"a", 2})
}

func TestExpire_AnotherTimeCountsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(ttl(specOf("a", 1), time.Hour))
	keep := func(d time.Duration) Respecified { return Respecified{1, func(s *Spec) { s.TTL = d }} }
	p.pass(10 * time.Second)
	p.on(keep(0))
	p.never()
	p.on(keep(time.Minute))
	p.on(user(1, "a"), Grant{1, 1, 1, false})
	p.on(Configured{Specs: map[uint64]*Spec{1: with(specOf("a", 1), func(s *Spec) { s.ContextLength, s.TTL = 512, time.Hour })}}) // it is restarted when it is idle
	p.on(keep(5 * time.Second))
	p.on(Respecified{7, func(*Spec) { t.Error("there is no such instance") }})
	in := p.st.Instances[0]
	if in.Spec.TTL != 5*time.Second || in.Next.TTL != 5*time.Second || in.Next.ContextLength != 512 {
		t.Errorf("%+v, and after the restart %+v", in.Spec, in.Next)
	}
}

func TestExpire_AShorterTimeThanItWasIdle(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	first := ttl(specOf("a", 1), time.Hour)
	p.idle(first)
	p.pass(10 * time.Second)
	p.on(Respecified{1, func(s *Spec) { s.TTL = time.Second }}, Stop{1, ForIdleness})
	if first.TTL != time.Hour {
		t.Error("a Spec in use was modified")
	}
}
