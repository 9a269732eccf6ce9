package schedule

import "testing"

func TestMemory_WhatCanNeverFitIsRefusedBeforeAnythingIsEvicted(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 8 << 30})
	p.idle(sized("a", 4<<30))
	large := sized("b", 9<<30)
	const told = "The model b needs about 9.7 GB with a context of 256 tokens for 1 requests at a time; the memory budget is 8.6 GB (8.0 GiB). Load it with a shorter context_length, or raise memory_budget."
	p.on(asks(1, large), Refuse{1, Error{Kind: NeverFits, Message: told}})
	p.on(loads(2, large), Refuse{2, Error{Kind: NeverFits, Message: told}})
	p.names("a")
}

func TestMemory_PinnedModelsHoldTheirRoom(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 8 << 30})
	p.idle(pinned(sized("a", 5<<30)))
	const told = "The model b needs about 4.3 GB with a context of 256 tokens for 1 requests at a time; the memory budget is 8.6 GB (8.0 GiB), of which pinned models take 5.4 GB. Load it with a shorter context_length, or raise memory_budget."
	p.on(asks(1, sized("b", 4<<30)), Refuse{1, Error{Kind: NeverFits, Message: told}})
	p.on(asks(2, sized("c", 3<<30)), Spawn{"c", 2})
}

func TestMemory_AsManyPinnedModelsAsMayBeLoaded(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 1})
	p.idle(pinned(specOf("a", 1)))
	const told = "The model b can't be loaded: max_loaded is 1, and pinned models take all of it. Unload one, or raise max_loaded."
	p.on(user(1, "b"), Refuse{1, Error{Kind: NeverFits, Message: told}})
}

func TestMemory_WhoWaitsIsToldWhenItCanNoLongerFit(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.busy(sized("a", 60))
	p.on(asks(1, sized("b", 80)))
	p.on(Configured{Limits: Limits{Memory: 70}}, Refuse{1, neverFits(sized("b", 80), &State{Limits: Limits{Memory: 70}}, load{})})
	p.waits()
}

func TestMemory_ALoadIsCountedWithWhatTheLastOneTook(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	a := p.idle(sized("a", 40))
	p.on(Measured{a, 70})
	p.on(unloader(1, "a"), Stop{a, ForRequest})
	p.on(stopped(a), Grant{Waiter: 1})
	b := p.idle(sized("b", 40))
	p.on(asks(2, sized("a", 40)), Stop{b, ForRoom}) // 40 would have fitted
	p.on(stopped(b), Spawn{"a", 3})
	if claim := p.st.Instances[0].Claim; claim != 70 {
		t.Errorf("it is counted with %d bytes, want 70", claim)
	}
	p.on(GaveUp{2}, Refuse{2, errCancelled})
	p.on(asks(3, with(sized("b", 40), func(s *Spec) { s.ContextLength = 512 }))) // b, with other settings: the estimate counts
	if learnt := p.st.sizeOf(with(sized("a", 40), func(s *Spec) { s.ContextLength = 512 })).memory; learnt != 40 {
		t.Errorf("with other settings it is counted with %d bytes, want 40", learnt)
	}
}

func TestMemory_AFigureThatWasMeasuredNeverKeepsAModelOut(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 150})
	a := p.idle(sized("a", 40))
	p.on(Measured{a, 140})
	p.on(unloader(1, "a"), Stop{a, ForRequest})
	p.on(stopped(a), Grant{Waiter: 1})
	p.idle(pinned(sized("p", 50)))
	p.on(asks(2, sized("a", 40)), Spawn{"a", 3}) // it takes what is left
	if claim := p.st.Instances[1].Claim; claim != 100 {
		t.Errorf("it is counted with %d bytes, want the 100 that are left", claim)
	}
}

func TestMemory_WhatTheEngineTellsOfItsBuffersCounts(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(user(1, "a"), Spawn{"a", 1})
	p.on(Signalled{1, Signal{Kind: SignalBuffer, Bytes: 100 << 20}})
	p.on(Signalled{1, Signal{Kind: SignalBuffer, Bytes: 20 << 20}})
	p.on(ready(1), Loaded{1}, Grant{1, 1, 1, true})
	if claim := p.st.Instances[0].Claim; claim != 120<<20+RuntimeMemory {
		t.Errorf("it is counted with %d bytes", claim)
	}
}

func TestMemory_AGrowingInstancePushesOthersOut(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.idle(sized("a", 20))
	p.idle(sized("b", 20))
	p.idle(pinned(sized("c", 20)))
	d := p.busy(sized("d", 20))
	p.on(user(1, "a"), Grant{1, 1, 1, false})
	p.on(Measured{d, 45}, Stop{2, ForRoom}) // the least recently used of those that are idle
	p.on(stopped(2))
	p.on(Measured{d, 75}) // all the others are busy or pinned
	p.on(back(1))         // a was used last: it stays, or a model that takes more than there is would never be loaded
	p.on(back(d), Stop{1, ForRoom})
	p.on(Measured{d, 200}) // nothing is left to evict
	p.names("a", "c", "d")
}

func TestMemory_RunningOutOfItIsFollowedByOneMoreAttempt(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a", 1))
	p.idle(pinned(specOf("b", 1)))
	p.busy(specOf("c", 1))
	p.on(user(1, "d"), Spawn{"d", 4})
	p.on(loader(2, "d"), Spawn{"d:2", 5})
	p.on(died(5), failed(2, "The model d:2 could not be loaded: exit status 1"))
	p.on(Signalled{4, Signal{Kind: SignalOutOfMemory}})
	p.on(died(4), Stop{1, ForRoom})
	p.on(user(3, "d")) // waits with the first
	p.on(stopped(1), Spawn{"d", 6})
	p.on(starved(6),
		failed(1, "The model d could not be loaded: signal: killed. It ran out of memory, also after room was made: load it with a shorter context_length, fewer parallel requests, or a smaller quantization"),
		failed(3, "The model d could not be loaded: signal: killed. It ran out of memory, also after room was made: load it with a shorter context_length, fewer parallel requests, or a smaller quantization"))
	p.on(user(4, "d"), Spawn{"d", 7}) // a new request is a new chance, with its own attempt more
	p.on(starved(7), Spawn{"d", 8})
	p.on(ready(8), Loaded{8}, Grant{4, 8, 1, true})
}

// TestMemory_OneThatWasKilledForWantOfItIsCountedWithMore, so that it gets more room the next time.
func TestMemory_OneThatWasKilledForWantOfItIsCountedWithMore(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.idle(sized("a", 40))
	b := p.busy(sized("b", 40))
	p.on(Measured{b, 56})
	p.on(Exited{Gen: b, Reason: "signal: killed", Killed: true, OutOfMemory: true}, Crashed{"b", "b", "signal: killed"})
	p.on(asks(3, sized("b", 40)), Stop{1, ForRoom}) // 70 don't fit beside it
	p.on(stopped(1), Spawn{"b", 3})
	p.on(ready(3), Loaded{3}, Grant{3, 3, 1, true})
	p.on(Measured{3, 20})
	if claim := p.st.Find(3).Claim; claim != 70 {
		t.Errorf("it is counted with %d bytes, want 70", claim)
	}
}

func TestMemory_WhoAskedForTheLoadWaitsForTheSecondAttempt(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.on(loader(1, "a"), Spawn{"a:2", 2})
	p.on(unloader(2, "a")) // a leaves, but it is busy
	p.on(starved(2))       // what leaves is waited for
	p.on(loader(3, "a"), Spawn{"a:3", 3})
	p.on(back(1), Stop{1, ForRequest})
	p.on(stopped(1), Grant{Waiter: 2}, Spawn{"a:2", 4})
	p.on(ready(4), Loaded{4}, Grant{Waiter: 1, Gen: 4, SawLoad: true})
}

func TestMemory_ASecondAttemptForWhichThereIsNoRoomIsTold(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	a := p.idle(sized("a", 40))
	p.on(loads(1, sized("b", 60)), Spawn{"b", 2})
	p.on(asks(2, sized("b", 60)))
	p.on(starved(2), Stop{a, ForRoom})
	refusal := neverFits(sized("b", 60), &State{Limits: Limits{Memory: 50}}, load{})
	p.on(Configured{Limits: Limits{Memory: 50}})
	p.on(stopped(a), Refuse{1, refusal}, Refuse{2, refusal})
	p.waits()
}

func TestMemory_WithoutALimitEverythingFits(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]Limits{"none": {}, "of instances": {Instances: 2}, "of memory": {Memory: 2 << 40}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, limits)
			p.on(asks(1, sized("a", 1<<40)), Spawn{"a", 1})
			p.on(asks(2, sized("b", 1<<40)), Spawn{"b", 2})
			if claim := p.st.Instances[1].Claim; claim != 1<<40 {
				t.Errorf("it is counted with %d bytes", claim)
			}
		})
	}
}

// A ready instance is counted with the buffers that it reports, what its engine takes besides, and what it may still fill.
func TestMemory_AReadyInstanceIsCountedWithItsReserve(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(asks(1, with(sized("a", 1<<30), func(s *Spec) { s.Reserve = 5 << 20 })), Spawn{"a", 1})
	p.on(Signalled{1, Signal{Kind: SignalBuffer, Bytes: 100 << 20}})
	p.on(ready(1), Loaded{1}, Grant{1, 1, 1, true})
	if claim, want := p.st.Instances[0].Claim, int64(100<<20+RuntimeMemory+5<<20); claim != want {
		t.Errorf("it is counted with %d bytes, want %d", claim, want)
	}
}

func TestMemory_OnlyWhatIsReadyIsMeasured(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(asks(1, sized("a", 40)), Spawn{"a", 1})
	p.on(Measured{1, 70})
	if claim := p.st.Instances[0].Claim; claim != 40 {
		t.Errorf("while it is loading, it is counted with %d bytes, want 40", claim)
	}
	p.on(died(1), failed(1, "The model a could not be loaded: exit status 1"))
	p.on(Measured{1, 70})
}
