package schedule

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog/model"
)

// drafted is a Spec with a draft model.
func drafted(key, draft string) *Spec {
	return with(specOf(key, 1), func(s *Spec) {
		d := specOf(draft, 1).Model
		s.Draft = &d
	})
}

// wantsDraft is a user who needs the draft model.
func wantsDraft(id uint64, key, draft string) Asked {
	asked := asks(id, drafted(key, draft))
	asked.Waiter.Draft = draft
	return asked
}

func TestChoose_TheInstanceWithTheDraftModel(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a", 1))
	p.on(wantsDraft(1, "a", "d"), Spawn{"a:2", 2})
	p.on(wantsDraft(2, "a", "d"))
	p.on(wantsDraft(3, "a", "e"), Spawn{"a:3", 3})
	p.on(ready(2), Loaded{2}, Grant{1, 2, 1, true})
	p.on(user(4, "a"), Grant{4, 1, 1, false})
	p.on(back(2), Grant{2, 2, 1, true})
	p.on(back(2))
	p.on(user(5, "a")) // it didn't ask for one with a draft model
	p.on(died(3), failed(3, "The model a:3 could not be loaded: exit status 1"))
	p.on(back(1), Grant{5, 1, 1, false})
}

func TestChoose_ADraftModelOfTheSettingsIsAskedForByAll(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(drafted("a", "d"))
	p.on(asks(1, drafted("a", "d")), Grant{1, 1, 1, false})
	p.on(back(1))
	// New settings that take it away count for the instance once it is idle; until then it serves.
	p.on(asks(2, drafted("a", "d")), Grant{2, 1, 1, false})
	p.on(Configured{Specs: map[uint64]*Spec{1: specOf("a", 1)}})
	p.on(user(3, "a"))
	p.on(back(1), Grant{3, 1, 1, false})
}

func TestChoose_ALoadServesThoseWhoAskForTheSameDraft(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 2})
	p.idle(specOf("x", 1))
	p.idle(specOf("y", 1))
	p.on(wantsDraft(1, "a", "d"), Stop{1, ForRoom})
	p.on(wantsDraft(2, "a", "d"))        // that one will do
	p.on(user(3, "a"), Stop{2, ForRoom}) // it won't
	p.on(stopped(1), Spawn{"a", 3})
	p.on(ready(3), Loaded{3}, Grant{1, 3, 1, true})
	p.on(back(3), Grant{2, 3, 1, true})
	p.on(stopped(2), Spawn{"a:2", 4})
}

// long returns a Spec with the given context length, and two slots.
func long(tokens int) *Spec {
	return with(specOf("a", 2), func(s *Spec) { s.ContextLength = tokens })
}

// needs is a user whose request takes the given context.
func needs(id uint64, likely, safe int) Asked {
	asked := user(id, "a")
	asked.Waiter.Context = ContextNeed{Likely: likely, Safe: safe}
	return asked
}

// longAndShort has a model with two idle instances, the first of 1024 and the second of 512 tokens.
func longAndShort(t *testing.T) *play {
	p := newPlay(t, Limits{})
	p.idle(long(1024))
	p.on(loads(1, long(512)), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{Waiter: 1, Gen: 2, SawLoad: true})
	return p
}

func TestChoose_TheLeastBusyThatFits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		likely, safe int
		want         []uint64 // who serves the first, the second request and so on; 0: it waits
	}{
		"both fit":                {100, 500, []uint64{1, 2, 1, 2, 0}},
		"the short one may":       {100, 600, []uint64{1, 1, 2, 2, 0}},
		"the short one doesn't":   {600, 900, []uint64{1, 1, 0}},
		"none does":               {2000, 8000, []uint64{1, 1, 0}},
		"the long one surely may": {512, 1 << 20, []uint64{1, 1, 2, 2, 0}},
		"nothing is known":        {0, 0, []uint64{1, 2, 1, 2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := longAndShort(t)
			for i, gen := range tt.want {
				id := uint64(10 + i)
				if gen == 0 {
					p.on(needs(id, tt.likely, tt.safe))
					p.waits(id)
				} else {
					p.on(needs(id, tt.likely, tt.safe), Grant{id, gen, 1, false})
				}
			}
		})
	}
}

// A request that waits for the longer instance doesn't keep the shorter one from others.
func TestChoose_WhoWaitsForTheLongOneLeavesTheShortOne(t *testing.T) {
	t.Parallel()
	p := longAndShort(t)
	p.on(needs(2, 600, 600), Grant{2, 1, 1, false})
	p.on(needs(3, 600, 600), Grant{3, 1, 1, false})
	p.on(needs(4, 600, 600))
	p.on(needs(5, 10, 20), Grant{5, 2, 1, false})
	p.on(back(1), Grant{4, 1, 1, false})
}

// If the longer one is unloaded for good, a long prompt is sent to the shorter one, which may refuse it.
func TestChoose_ALongPromptDoesNotWaitForWhatIsUnloaded(t *testing.T) {
	t.Parallel()
	p := longAndShort(t)
	p.on(needs(2, 600, 600), Grant{2, 1, 1, false})
	p.on(unloader(3, "a"))
	p.on(needs(4, 600, 600), Grant{4, 2, 1, false})
}

// An instance that certainly fits is preferred, whichever was loaded first.
func TestChoose_TheOneThatJustFits(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(long(512))
	p.on(loads(1, long(1024)), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{Waiter: 1, Gen: 2, SawLoad: true})
	for i, gen := range []uint64{2, 2, 1, 1} {
		id := uint64(10 + i)
		p.on(needs(id, 100, 1024), Grant{id, gen, 1, false})
	}
}

// If the longer one is being restarted, a long prompt waits for it instead of being refused by the shorter one.
func TestChoose_ALongPromptWaitsForTheLongOneToComeBack(t *testing.T) {
	t.Parallel()
	p := longAndShort(t)
	p.on(needs(2, 600, 600), Grant{2, 1, 1, false})
	p.on(Configured{Specs: map[uint64]*Spec{1: with(long(1024), func(s *Spec) { s.BatchSize = 64 })}})
	p.on(back(1), Stop{1, ForSettings})
	p.on(needs(3, 600, 600))
	p.on(needs(4, 10, 20), Grant{4, 2, 1, false})
	p.on(stopped(1), Spawn{"a", 3})
	p.on(ready(3), Loaded{3}, Grant{3, 3, 1, true})
}

// The same if it crashed and backs off for a while.
func TestChoose_ALongPromptWaitsForTheLongOneThatCrashed(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(long(512))
	p.on(loads(1, autoRestart(long(1024))), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{Waiter: 1, Gen: 2, SawLoad: true})
	p.on(died(2), Crashed{"a:2", "a", "exit status 1"}, Spawn{"a:2", 3})
	p.on(died(3), Spawn{"a:2", 4})
	p.on(died(4))
	p.at(needs(2, 600, 600))
	p.at(needs(3, 10, 20), Grant{3, 1, 1, false})
	p.on(Tick{}, Spawn{"a:2", 5})
	p.on(ready(5), Loaded{5}, Grant{2, 5, 1, true})
}

// A request for a named instance waits for it while it is being restarted.
func TestChoose_TheOneThatIsNamedComesBack(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a", 1))
	p.on(loads(1, autoRestart(specOf("a", 1))), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{Waiter: 1, Gen: 2, SawLoad: true})
	p.on(died(2), Crashed{"a:2", "a", "exit status 1"}, Spawn{"a:2", 3})
	p.on(died(3), Spawn{"a:2", 4})
	p.on(died(4)) // from the third time on it is left alone for a while
	named := user(2, "a")
	named.Waiter.Instance = "a:2"
	p.at(named) // though another one is idle
	p.on(Tick{}, Spawn{"a:2", 5})
	p.on(ready(5), Loaded{5}, Grant{2, 5, 1, true})
}

func TestChoose_TheOneThatIsNamedWhileItIsThere(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a", 1))
	p.on(loader(1, "a"), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{Waiter: 1, Gen: 2, SawLoad: true})
	named := user(2, "a")
	named.Waiter.Instance = "a:2"
	p.on(named, Grant{2, 2, 1, false})
	p.on(unloader(3, "a:2"))
	p.on(back(2), Stop{2, ForRequest})
	p.on(stopped(2), Grant{Waiter: 3})
	named.Waiter.ID = 4
	p.on(named, Grant{4, 1, 1, false}) // else any of the model
}

// A model's key may look like the name of another's second instance.
func TestChoose_NamesOfDifferentModelsDoNotMix(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a:2", 1))
	p.idle(specOf("a", 1))
	p.on(loader(1, "a"), Spawn{"a:3", 3})
	p.on(loader(2, "a:2"), Spawn{"a:2:2", 4})
	named := user(3, "a")
	named.Waiter.Instance = "a:2" // that is not an instance of a
	p.on(named, Grant{3, 2, 1, false})
}

func TestChoose_TheNameOfOneThatLeavesIsTaken(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.on(unloader(1, "a"))
	p.on(loader(2, "a"), Spawn{"a:2", 2})
	p.on(back(1), Stop{1, ForRequest})
	p.on(loader(3, "a"), Spawn{"a:3", 3})
	p.on(stopped(1), Grant{Waiter: 1})
	p.on(loader(4, "a"), Spawn{"a", 4})
}

func TestChoose_MoreSlotsThanThereAreIsAllOfThem(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a", 2))
	wide := asks(1, specOf("a", 2))
	wide.Waiter.Slots = 9
	p.on(wide, Grant{1, 1, 2, false})
}

// A request for a certain instance takes any once that is gone, also if another gets its name.
func TestChoose_AnotherWithTheNameOfOneThatIsGone(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.busy(specOf("a", 1))
	p.on(loader(1, "a"), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{Waiter: 1, Gen: 2, SawLoad: true})
	for id, want := range [][]Effect{{Grant{2, 2, 1, false}}, nil} {
		asked := user(uint64(2+id), "a")
		asked.Waiter.Instance = "a:2"
		p.on(asked, want...)
	}
	crash(p, 2)
	p.on(loader(4, "a"), Spawn{"a:2", 3})
	p.on(back(1), Grant{3, 1, 1, false})
}

func TestChoose_ALoadOfAnInstanceThatIsGone(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	asked := loader(1, "a")
	asked.Waiter.Instance = "a:2"
	p.on(asked, Refuse{1, UnknownInstance("a:2")})
	p.waits()
}

func TestChoose_WhichLoadSomebodyWaitsFor(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(loader(1, "a"), Spawn{"a", 1})
	p.on(loader(2, "a"), Spawn{"a:2", 2})
	p.on(Signalled{2, Signal{Kind: SignalProgress, Progress: 0.5}})
	p.on(user(3, "a"))
	p.on(user(4, "b"), Spawn{"b", 3})
	for i, want := range []string{"a", "a:2", "a:2", "b"} { // a user takes what comes first
		if in := p.st.LoadingFor(p.st.Waiters[i]); in == nil || in.ID != want {
			t.Errorf("waiter %d waits for %+v, want %s", i+1, in, want)
		}
	}
	p.on(ready(1), Loaded{1}, Grant{Waiter: 1, Gen: 1, SawLoad: true}, Grant{3, 1, 1, true})
	p.on(user(5, "a"))
	if in := p.st.LoadingFor(p.st.Waiters[2]); in != nil {
		t.Errorf("who waits for a slot is told of the load of %s", in.ID)
	}
}

func TestChoose_AnInstanceWithTheAdapter(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	with := specOf("a", 1)
	with.Adapters = []model.Model{{Key: "x"}, {Key: "y"}}
	p.idle(specOf("a", 1))
	asked := asks(1, with)
	asked.Waiter.Adapter = "y"
	p.on(asked, Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{1, 2, 1, true})
	p.on(asks(2, with), Grant{2, 1, 1, false}) // any will do
}
