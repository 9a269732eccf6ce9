package supervisor

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
	p := newPlay(t, Limits{Memory: 80})
	p.idle(slotted("a", 4))
	p.pass(recentUse)
	p.on(asks(1, slotted("b", 4)), Stop{1, ForRoom})
	p.on(stopped(1), Spawn{"b", 2})
	p.slots(4)
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
	p.on(asks(2, with(slotted("c", 4), func(s *Spec) { s.Smaller = nil })), Refuse{2, neverFits(slotted("c", 4), Limits{Memory: 60}, load{1, 40})})
}
