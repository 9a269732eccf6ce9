package supervisor

import "testing"

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
	p.on(user(4, "a"), Grant{4, 1, 1, false}) // any will do
	p.on(back(2), Grant{2, 2, 1, true})
	p.on(back(2))
	p.on(user(5, "a"), Grant{5, 2, 1, false})
	p.on(died(3), failed(3, "The model a:3 could not be loaded: exit status 1"))
}

func TestChoose_OneLoadServesThoseWithAndWithoutADraft(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 2})
	p.idle(specOf("x", 1))
	p.idle(specOf("y", 1))
	p.on(wantsDraft(1, "a", "d"), Stop{1, ForRoom})
	p.on(user(2, "a"))                              // the one with the draft will do
	p.on(wantsDraft(3, "a", "e"), Stop{2, ForRoom}) // that one won't
	p.on(stopped(1), Spawn{"a", 3})
	p.on(ready(3), Loaded{3}, Grant{1, 3, 1, true})
	p.on(back(3), Grant{2, 3, 1, true})
	p.on(stopped(2), Spawn{"a:2", 4})
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
