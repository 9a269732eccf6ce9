package schedule

import "testing"

// closing is a schedule, and what must follow when everything is closed after it.
type closing struct {
	play func(p *play)
	want []Effect
}

func refusedBy(err Error, ids ...uint64) (effects []Effect) {
	for _, id := range ids {
		effects = append(effects, Refuse{id, err})
	}
	return effects
}

func closings() map[string]closing {
	refused := func(ids ...uint64) []Effect { return refusedBy(ErrClosing, ids...) }
	return map[string]closing{
		"nothing is loaded": {func(*play) {}, nil},
		"starting":          {func(p *play) { p.on(user(1, "a"), Spawn{"a", 1}) }, append(refused(1), Stop{1, ForClosing})},
		"loading": {func(p *play) {
			p.on(loader(1, "a"), Spawn{"a", 1})
			p.on(Signalled{1, Signal{Kind: SignalProgress, Progress: 0.5}})
		}, append(refused(1), Stop{1, ForClosing})},
		"idle": {func(p *play) { p.idle(specOf("a", 1)) }, []Effect{Stop{1, ForClosing}}},
		"busy": {func(p *play) {
			p.busy(specOf("a", 1))
			p.on(user(1, "a"))
			p.on(first(2, "a"))
		}, append(refused(2, 1), Stop{1, ForClosing})},
		"draining": {func(p *play) {
			p.busy(specOf("a", 1))
			p.on(unloader(1, "a"))
		}, []Effect{Stop{1, ForClosing}}},
		"stopping": {func(p *play) {
			p.idle(specOf("a", 1))
			p.on(unloader(1, "a"), Stop{1, ForRequest})
		}, nil},
		"to be renewed": {func(p *play) {
			p.busy(specOf("a", 1))
			p.on(configure(1, renewed(specOf("a", 1))))
		}, []Effect{Stop{1, ForClosing}}},
		"being renewed": {func(p *play) {
			p.idle(specOf("a", 1))
			p.on(configure(1, renewed(specOf("a", 1))), Stop{1, ForSettings})
		}, nil},
		"blocked": {func(p *play) {
			p.st.Limits.Instances = 1
			p.busy(specOf("a", 1))
			p.on(user(1, "b"))
		}, append(refused(1), Stop{1, ForClosing})},
		"to come back": {func(p *play) {
			p.idle(autoRestart(specOf("a", 1)))
			p.st.Failures = map[string]*Failure{"a": {Count: 2, At: p.now}}
			crash(p, 1)
			p.at(user(1, "a"))
		}, refused(1)},
	}
}

// Closing ends instances in any state, with any waiters.
func TestClose_InEveryState(t *testing.T) {
	t.Parallel()
	for name, c := range closings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, Limits{})
			c.play(p)
			p.on(Closed{}, c.want...)
			p.on(Closed{})
			for id, asked := range []Asked{user(10, "a"), loader(11, "a"), unloader(12, "a"), wantsDraft(13, "a", "d")} {
				p.on(asked, Refuse{10 + uint64(id), ErrClosing})
			}
			p.on(configure(1, specOf("a", 1)))
			for _, gen := range []uint64{1, 2} {
				Step(&p.st, ready(gen), p.now)
				Step(&p.st, back(gen), p.now)
				Step(&p.st, died(gen), p.now)
			}
			if len(p.st.Instances)+len(p.st.Waiters) > 0 {
				t.Errorf("left: %v, %v", p.st.Instances, p.st.Waiters)
			}
			p.never()
		})
	}
}

// A waiter that gives up is answered once, at any stage; it returns what it has been granted itself.
func TestClose_GivingUpInEveryState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play func(p *play)
		want []Effect
	}{
		"waits for a load":     {func(p *play) { p.on(user(1, "a"), Spawn{"a", 1}) }, []Effect{Refuse{1, errCancelled}}},
		"asked for a load":     {func(p *play) { p.on(loader(1, "a"), Spawn{"a", 1}) }, []Effect{Refuse{1, errCancelled}}},
		"has been granted":     {func(p *play) { p.idle(specOf("a", 1)); p.on(user(1, "a"), Grant{1, 1, 1, false}) }, nil},
		"has been refused":     {func(p *play) { p.on(unloader(1, "a"), Refuse{1, UnknownInstance("a")}) }, nil},
		"waits for its unload": {func(p *play) { p.busy(specOf("a", 1)); p.on(unloader(1, "a")) }, []Effect{Refuse{1, errCancelled}}},
		"waits for room": {func(p *play) {
			p.st.Limits.Instances = 1
			p.idle(specOf("b", 1))
			p.on(user(1, "a"), Stop{1, ForRoom})
		}, []Effect{Refuse{1, errCancelled}}},
		"waits for wide slots, with others behind": {func(p *play) {
			two := specOf("a", 2)
			p.busy(two)
			wide := asks(1, two)
			wide.Waiter.Slots = 2
			p.on(wide)
			p.on(asks(2, two))
		}, []Effect{Refuse{1, errCancelled}, Grant{2, 1, 1, false}}},
		"waits for one that is to come back": {func(p *play) {
			p.idle(autoRestart(specOf("a", 1)))
			p.st.Failures = map[string]*Failure{"a": {Count: 2, At: p.now}}
			crash(p, 1)
			p.at(user(1, "a"))
		}, []Effect{Refuse{1, errCancelled}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, Limits{})
			c.play(p)
			p.at(GaveUp{1}, c.want...)
			p.at(GaveUp{1})
			p.waits()
		})
	}
}
