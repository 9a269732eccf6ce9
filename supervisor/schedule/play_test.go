package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// play is a schedule, event by event, with what must follow from each. A second passes before each event.
type play struct {
	t   *testing.T
	st  State
	now time.Time
	ids uint64 // of waiters that the play makes by itself, from 1000 on
}

func newPlay(t *testing.T, limits Limits) *play {
	t.Helper()
	return &play{t: t, st: State{Limits: limits}, now: noon, ids: 1000}
}

// on is an event, and the effects that it must have.
func (p *play) on(ev Event, want ...Effect) {
	p.t.Helper()
	p.now = p.now.Add(time.Second)
	p.at(ev, want...)
}

// at is an event at the same time as the last.
func (p *play) at(ev Event, want ...Effect) {
	p.t.Helper()
	if diff := cmp.Diff(want, Step(&p.st, ev, p.now)); diff != "" {
		p.t.Fatalf("%T %+v: effects (-want +got):\n%s", ev, ev, diff)
	}
}

// pass lets time pass without an event.
func (p *play) pass(d time.Duration) { p.now = p.now.Add(d) }

// due lets time pass until the deadline, which must be so long from now, and has the effects.
func (p *play) due(in time.Duration, want ...Effect) {
	p.t.Helper()
	at := p.st.Deadline(p.now)
	if at.IsZero() || at.Sub(p.now) != in {
		p.t.Fatalf("the deadline is at %v, want it in %v", at, in)
	}
	p.now = at
	p.at(Tick{}, want...)
	if again := p.st.Deadline(p.now); !again.IsZero() && !again.After(at) {
		p.t.Fatalf("after the deadline at %v another one is at %v", at, again)
	}
}

// never checks that no Tick is wanted.
func (p *play) never() {
	p.t.Helper()
	if at := p.st.Deadline(p.now); !at.IsZero() {
		p.t.Fatalf("a deadline at %v, want none", at)
	}
}

// idle loads an instance, uses it once and leaves it idle. It returns its generation.
func (p *play) idle(spec *Spec) uint64 {
	p.t.Helper()
	gen := p.busy(spec)
	returned := back(gen)
	returned.Waiter = p.ids
	p.on(returned)
	return gen
}

// busy loads an instance and lends one of its slots.
func (p *play) busy(spec *Spec) uint64 {
	p.t.Helper()
	p.ids++
	gen := p.st.LastGen + 1
	p.on(Asked{Waiter{ID: p.ids, Demand: Demand{Key: spec.Model.Key, Slots: 1, Spec: spec, MayLoad: true}}}, Spawn{p.st.freeID(spec.Model.Key), gen})
	p.on(ready(gen), Loaded{gen}, Grant{p.ids, gen, 1, true})
	return gen
}

// waits checks who waits, by their ids, in order.
func (p *play) waits(want ...uint64) {
	p.t.Helper()
	var got []uint64
	for _, w := range p.st.Waiters {
		if w.Kind != WaitRestart {
			got = append(got, w.ID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Fatalf("who waits (-want +got):\n%s", diff)
	}
}

// names checks what is loaded, by its names, in order.
func (p *play) names(want ...string) {
	p.t.Helper()
	var got []string
	for _, in := range p.st.Instances {
		got = append(got, in.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Fatalf("what is loaded (-want +got):\n%s", diff)
	}
}

// sized is a Spec that takes so much memory.
func sized(key string, memory int64) *Spec {
	spec := specOf(key, 1)
	spec.Memory = memory
	return spec
}

// with changes a Spec.
func with(spec *Spec, change func(*Spec)) *Spec {
	own := *spec
	change(&own)
	return &own
}

func pinned(spec *Spec) *Spec      { return with(spec, func(s *Spec) { s.Pinned = true }) }
func autoRestart(spec *Spec) *Spec { return with(spec, func(s *Spec) { s.AutoRestart = true }) }
func ttl(spec *Spec, d time.Duration) *Spec {
	return with(spec, func(s *Spec) { s.TTL = d })
}

func asks(id uint64, spec *Spec) Asked {
	return Asked{Waiter{ID: id, Kind: WaitSlots, Demand: Demand{Key: spec.Model.Key, Slots: 1, Spec: spec, MayLoad: true}}}
}

func loads(id uint64, spec *Spec) Asked {
	return Asked{Waiter{ID: id, Kind: WaitLoad, Demand: Demand{Key: spec.Model.Key, Spec: spec}}}
}

func back(gen uint64) Returned {
	return Returned{Gen: gen, Slots: 1, Answered: true, Key: "a"}
}

func died(gen uint64) Exited { return Exited{Gen: gen, Reason: "exit status 1"} }

func stopped(gen uint64) Exited { return Exited{Gen: gen, Reason: "it was told to stop"} }

// starved is the end of a process that the system killed.
func starved(gen uint64) Exited { return Exited{Gen: gen, Reason: "signal: killed", Killed: true} }

func failed(id uint64, message string) Refuse {
	return Refuse{id, Error{Kind: LoadFailed, Message: message}}
}
