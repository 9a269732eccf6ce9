package schedule

import "testing"

func TestEndAsked_AnIdleInstanceIsUnloadedAndStaysSo(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	gen := p.idle(pinned(autoRestart(specOf("a", 1))))
	p.on(EndAsked{gen}, Stop{gen, ForSignal})
	p.on(EndAsked{gen}) // a signal stays pending
	p.on(stopped(gen))
	p.names()
	p.on(user(1, "a"), Spawn{"a", 2})
}

func TestEndAsked_ABusyInstanceEndsWithItsRequests(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	gen := p.busy(specOf("a", 1))
	p.on(EndAsked{gen})
	p.on(user(1, "a")) // is for a fresh one
	p.on(EndAsked{gen})
	p.on(back(gen), Stop{gen, ForSignal})
	p.on(stopped(gen), Spawn{"a", 2})
}

func TestEndAsked_OfWhatIsGone(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	gen := p.idle(specOf("a", 1))
	p.on(unloader(1, "a"), Stop{gen, ForRequest})
	p.on(EndAsked{gen})
	p.on(stopped(gen), Grant{Waiter: 1})
	p.on(EndAsked{gen})
}
