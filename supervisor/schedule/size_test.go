package schedule

import "testing"

// slotted takes 10 for itself and 10 for each of its slots, and may be loaded with fewer of them.
func slotted(key string, slots int) *Spec {
	spec := specOf(key, slots)
	spec.Memory = int64(10 + 10*slots)
	for n := slots - 1; n > 0; n-- {
		spec.Smaller = append(spec.Smaller, Size{Parallel: n, Memory: int64(10 + 10*n)})
	}
	return spec
}

// slots checks how many slots the instances have, in order.
func (p *play) slots(want ...int) {
	p.t.Helper()
	for i, in := range p.st.Instances {
		if i >= len(want) || in.Spec.Parallel != want[i] {
			p.t.Fatalf("%s has %d slots, want %v", in.ID, in.Spec.Parallel, want)
		}
	}
}

func TestSize_FewerSlotsRatherThanAnEviction(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.idle(slotted("a", 4))
	p.idle(slotted("b", 4)) // of 50 are left
	p.slots(4, 4)
	p.on(Configured{Limits: Limits{Memory: 80}}, Stop{1, ForRoom})
	p.on(stopped(1))
	p.on(asks(1, slotted("a", 4)), Spawn{"a", 3})
	p.slots(4, 2)
	if claim := p.st.Instances[1].Claim; claim != 30 {
		t.Errorf("it is counted with %d bytes, want 30", claim)
	}
}

// Two models that are asked in turn are loaded once each.
func TestSize_ModelsInUseStayTogether(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 90})
	a, b := slotted("a", 4), slotted("b", 4)
	p.idle(a)
	p.idle(b)
	p.slots(4, 3)
	for n := range uint64(20) {
		p.on(asks(10+2*n, a), Grant{10 + 2*n, 1, 1, false})
		p.on(back(1))
		p.on(asks(11+2*n, b), Grant{11 + 2*n, 2, 1, false})
		p.on(back(2))
	}
}

func TestSize_WhatIsLoadedIsMadeSmallerOnceItIsIdle(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 60})
	p.busy(slotted("a", 4))
	p.on(asks(1, slotted("b", 4))) // 10 are left: a gives way, but is in use
	p.on(back(1), Stop{1, ForSharing})
	p.on(asks(2, slotted("a", 4))) // it comes back
	p.on(stopped(1), Spawn{"a", 2}, Spawn{"b", 3})
	p.slots(3, 1)
	p.on(ready(2), Loaded{2}, Grant{2, 2, 1, true})
	p.on(ready(3), Loaded{3}, Grant{1, 3, 1, true})
}

func TestSize_WhatIsPinnedOrGivenIsObeyed(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 60})
	p.idle(pinned(slotted("a", 3)))
	p.idle(with(slotted("b", 1), func(s *Spec) { s.Smaller = nil }))
	p.slots(3, 1)
	p.on(asks(1, slotted("c", 4)), Stop{2, ForRoom})
	p.on(stopped(2), Spawn{"c", 3})
	p.slots(3, 1)
}

// What hasn't been used for long gives way, so that models in use have all their slots.
func TestSize_NotForWhatNobodyUses(t *testing.T) {
	t.Parallel()
	for _, memory := range []int64{80, 90} { // beside it, there is room for a smaller size, or for none
		p := newPlay(t, Limits{Memory: memory})
		p.idle(slotted("a", 4))
		p.pass(recentUse)
		p.on(asks(1, slotted("b", 4)), Stop{1, ForRoom})
		p.on(stopped(1), Spawn{"b", 2})
		p.slots(4)
	}
}

// What was used as long ago as recentUse still counts as used recently.
func TestSize_RecentUse(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 90})
	p.idle(slotted("a", 4))
	p.pass(recentUse)
	p.at(asks(1, slotted("b", 4)), Spawn{"b", 2})
	p.slots(4, 3)
}

func TestSize_GrowsWhenTheOthersAreNoLongerUsed(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 80})
	p.idle(slotted("a", 4))
	b := slotted("b", 4)
	p.busy(b)
	p.slots(4, 2)
	p.on(asks(1, b), Grant{1, 2, 1, false})
	p.on(asks(2, b)) // a was used lately
	p.on(back(2), Grant{2, 2, 1, false})
	p.on(back(2))
	p.pass(recentUse)
	p.on(asks(3, b), Grant{3, 2, 1, false})
	p.on(asks(4, b)) // now b is to have four slots,
	p.on(back(2), Grant{4, 2, 1, false})
	p.on(back(2))
	p.on(back(2), Stop{2, ForSettings}) // once it is idle
	p.on(stopped(2), Stop{1, ForRoom})
	p.on(stopped(1), Spawn{"b", 3})
	p.slots(4)
}

// New settings that come to the same leave an instance as small as it is.
func TestSize_SettingsThatChangeNothing(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 80})
	p.idle(slotted("a", 4))
	p.idle(slotted("b", 4))
	p.on(Configured{Limits: Limits{Memory: 80}, Specs: map[uint64]*Spec{1: slotted("a", 4), 2: slotted("b", 4)}})
	p.slots(4, 2)
	p.on(Configured{Limits: Limits{Memory: 80}, Specs: map[uint64]*Spec{2: with(slotted("b", 4), func(s *Spec) { s.ContextLength = 512 })}}, Stop{2, ForSettings})
}

// Even a model that fits in full beside nothing is loaded beside what is pinned.
func TestSize_BesideWhatIsPinned(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 60})
	p.idle(pinned(slotted("a", 3)))
	p.on(asks(1, slotted("b", 4)), Spawn{"b", 2})
	p.slots(3, 1)
	p.on(asks(2, with(slotted("c", 4), func(s *Spec) { s.Smaller = nil })), Refuse{2, neverFits(slotted("c", 4), &State{Limits: Limits{Memory: 60}}, load{instances: 1, memory: 40})})
}

// Only what gets smaller by it is restarted in a smaller size.
func TestSize_ASizeThatSavesNothing(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 60})
	p.idle(with(sized("a", 20), func(s *Spec) { s.Parallel, s.Smaller = 2, []Size{{Parallel: 1, Memory: 20}} }))
	p.idle(slotted("b", 3))
	p.on(asks(1, sized("c", 10)), Stop{2, ForSharing})
	p.on(stopped(2), Spawn{"b", 3}, Spawn{"c", 4})
	p.slots(2, 2, 1)
}

func TestSize_StaysSmall(t *testing.T) {
	t.Parallel()
	small := func(t *testing.T) (*play, *Spec) {
		t.Helper()
		p := newPlay(t, Limits{Memory: 80})
		p.idle(slotted("a", 4))
		b := slotted("b", 4)
		p.busy(b)
		p.slots(4, 2)
		return p, b
	}
	t.Run("while the others are used", func(t *testing.T) {
		t.Parallel()
		p, b := small(t)
		p.on(asks(1, b), Grant{1, 2, 1, false})
		p.on(asks(2, b))
		p.on(back(2), Grant{2, 2, 1, false})
		p.on(back(2))
		p.on(back(2))
	})
	t.Run("while nothing waits", func(t *testing.T) {
		t.Parallel()
		p, _ := small(t)
		p.on(unloader(1, "a"), Stop{1, ForRequest})
		p.on(stopped(1), Grant{Waiter: 1})
		p.on(back(2))
	})
}

// A smaller instance is restarted in its full size also after settings have come that change nothing, or after it was
// restarted itself to make room.
func TestSize_FullSizeIsRemembered(t *testing.T) {
	t.Parallel()
	a, b := slotted("a", 4), slotted("b", 4)
	grows := func(t *testing.T, p *play, gen uint64, spec *Spec) {
		t.Helper()
		p.pass(recentUse)
		for n := range p.st.Find(gen).Spec.Parallel {
			p.on(asks(uint64(10+n), spec), Grant{uint64(10 + n), gen, 1, false})
		}
		p.on(asks(20, spec))
		p.on(back(gen), Grant{20, gen, 1, false})
		for range p.st.Find(gen).Spec.Parallel - 1 {
			p.on(back(gen))
		}
		p.on(back(gen), Stop{gen, ForSettings})
	}
	t.Run("with the same settings", func(t *testing.T) {
		t.Parallel()
		p := newPlay(t, Limits{Memory: 80})
		p.idle(a)
		p.idle(b)
		p.on(Configured{Limits: p.st.Limits, Specs: map[uint64]*Spec{1: slotted("a", 4), 2: slotted("b", 4)}})
		grows(t, p, 2, b)
	})
	t.Run("after a restart", func(t *testing.T) {
		t.Parallel()
		p := newPlay(t, Limits{Memory: 60})
		p.idle(a)
		p.on(asks(1, b), Stop{1, ForSharing})
		p.on(stopped(1), Spawn{"a", 2}, Spawn{"b", 3})
		p.on(ready(2), Loaded{2})
		p.on(ready(3), Loaded{3}, Grant{1, 3, 1, true})
		p.on(back(3))
		grows(t, p, 2, a)
	})
	t.Run("and not taken for granted", func(t *testing.T) {
		t.Parallel()
		p := newPlay(t, Limits{})
		p.busy(specOf("c", 1))
		p.on(Configured{Specs: map[uint64]*Spec{1: specOf("c", 1)}})
		p.on(user(1, "c")) // it is in full size already
		p.on(back(1), Grant{1, 1, 1, false})
		p.on(back(1))
	})
}

// New settings of a smaller instance aren't put off or replaced by its full size.
func TestSize_NewSettingsOfASmallerOne(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 80})
	p.idle(slotted("a", 4))
	b := slotted("b", 4)
	p.busy(b)
	p.slots(4, 2)
	p.pass(recentUse)
	p.on(asks(1, b), Grant{1, 2, 1, false})
	longer := renewed(b)
	p.on(Configured{Limits: p.st.Limits, Specs: map[uint64]*Spec{2: longer}})
	p.on(asks(2, b))
	p.on(back(2), Grant{2, 2, 1, false})
	p.on(back(2))
	p.on(back(2), Stop{2, ForSettings})
	p.on(stopped(2), Stop{1, ForRoom})
	p.on(stopped(1), Spawn{"b", 3})
	if n := p.st.Find(3).Spec.ContextLength; n != longer.ContextLength {
		t.Errorf("context length %d, want %d", n, longer.ContextLength)
	}
}
