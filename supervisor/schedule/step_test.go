package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func specOf(key string, parallel int) *Spec {
	return &Spec{Engine: "fake", Model: catalog.Model{Key: key}, ContextLength: 256, Parallel: parallel}
}

func user(id uint64, key string) Asked {
	return Asked{Waiter{ID: id, Kind: WaitSlots, Demand: Demand{Key: key, Slots: 1, Spec: specOf(key, 1), MayLoad: true}}}
}

func loader(id uint64, key string) Asked {
	return Asked{Waiter{ID: id, Kind: WaitLoad, Demand: Demand{Key: key, Spec: specOf(key, 1)}}}
}

func unloader(id uint64, instance string) Asked {
	return Asked{Waiter{ID: id, Kind: WaitUnload, Demand: Demand{Instance: instance}}}
}

func ready(gen uint64) Signalled { return Signalled{gen, Signal{Kind: SignalReady}} }

// script is what happens, one event after the other, and what must follow from each.
type script []struct {
	event Event
	want  []Effect
}

func (s script) run(t *testing.T) *State {
	t.Helper()
	st := &State{}
	for i, step := range s {
		got := Step(st, step.event, noon.Add(time.Duration(i)*time.Second))
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Fatalf("step %d, %T: effects (-want +got):\n%s", i, step.event, diff)
		}
	}
	return st
}

func TestStep_LoadsOnceForManyWaiters(t *testing.T) {
	t.Parallel()
	script{
		{user(1, "a"), []Effect{Spawn{"a", 1}}},
		{user(2, "a"), nil},
		{user(3, "a"), nil},
		{ready(1), []Effect{Loaded{1}, Grant{1, 1, 1, true}}},
		{Returned{Gen: 1, Slots: 1}, []Effect{Grant{2, 1, 1, true}}},
		{Returned{Gen: 1, Slots: 1}, []Effect{Grant{3, 1, 1, true}}},
		{user(4, "a"), nil},
		{Returned{Gen: 1, Slots: 1}, []Effect{Grant{4, 1, 1, false}}},
	}.run(t)
}

func TestStep_ServesInOrderOfArrival(t *testing.T) {
	t.Parallel()
	wide := user(3, "a")
	wide.Waiter.Slots = 2
	spec := specOf("a", 2)
	first := user(1, "a")
	first.Waiter.Spec = spec
	script{
		{first, []Effect{Spawn{"a", 1}}},
		{ready(1), []Effect{Loaded{1}, Grant{1, 1, 1, true}}},
		{user(2, "a"), []Effect{Grant{2, 1, 1, false}}},
		{wide, nil},
		{user(4, "a"), nil},
		{Returned{Gen: 1, Slots: 1}, nil}, // one slot is free, but 3 was first and wants two
		{Returned{Gen: 1, Slots: 1}, []Effect{Grant{3, 1, 2, false}}},
		{Returned{Gen: 1, Slots: 2}, []Effect{Grant{4, 1, 1, false}}},
	}.run(t)
}

func TestStep_TakesTheLeastBusyInstanceOrTheOneAskedFor(t *testing.T) {
	t.Parallel()
	named := user(6, "a")
	named.Waiter.Instance = "a"
	script{
		{loader(1, "a"), []Effect{Spawn{"a", 1}}},
		{loader(2, "a"), []Effect{Spawn{"a:2", 2}}},
		{ready(1), []Effect{Loaded{1}, Grant{Waiter: 1, Gen: 1, SawLoad: true}}},
		{ready(2), []Effect{Loaded{2}, Grant{Waiter: 2, Gen: 2, SawLoad: true}}},
		{user(3, "a"), []Effect{Grant{3, 1, 1, false}}},
		{user(4, "a"), []Effect{Grant{4, 2, 1, false}}},
		{user(5, "a"), nil},
		{Returned{Gen: 2, Slots: 1}, []Effect{Grant{5, 2, 1, false}}},
		{Returned{Gen: 2, Slots: 1}, nil},
		{named, nil}, // a:2 is free, but a was asked for
		{Returned{Gen: 1, Slots: 1}, []Effect{Grant{6, 1, 1, false}}},
	}.run(t)
}

func TestStep_TellsEveryWaiterOfAFailedLoad(t *testing.T) {
	t.Parallel()
	failed := Error{Kind: LoadFailed, Message: "The model a could not be loaded: out of memory; exit status 1"}
	st := script{
		{user(1, "a"), []Effect{Spawn{"a", 1}}},
		{user(2, "a"), nil},
		{user(3, "b"), []Effect{Spawn{"b", 2}}},
		{Signalled{1, Signal{Kind: SignalTrouble, Text: "out of memory"}}, nil},
		{Signalled{1, Signal{Kind: SignalTrouble, Text: "and so it ends"}}, nil},
		{Exited{Gen: 1, Reason: "exit status 1"}, []Effect{Refuse{1, failed}, Refuse{2, failed}}},
		{user(4, "a"), []Effect{Spawn{"a", 3}}},
		{ready(1), nil}, // late words of the dead process
		{Exited{Gen: 1, Reason: "exit status 1"}, nil},
		{ready(3), []Effect{Loaded{3}, Grant{4, 3, 1, true}}},
	}.run(t)
	if n := len(st.Waiters); n != 1 {
		t.Errorf("%d waiters are left, want the one for b", n)
	}
}

func TestStep_AFailedSecondInstanceLeavesTheFirstOnesWaiters(t *testing.T) {
	t.Parallel()
	script{
		{user(1, "a"), []Effect{Spawn{"a", 1}}},
		{ready(1), []Effect{Loaded{1}, Grant{1, 1, 1, true}}},
		{user(2, "a"), nil},
		{loader(3, "a"), []Effect{Spawn{"a:2", 2}}},
		{Exited{Gen: 2, Reason: "exit status 1"}, []Effect{Refuse{3, Error{Kind: LoadFailed, Message: "The model a:2 could not be loaded: exit status 1"}}}},
		{Returned{Gen: 1, Slots: 1}, []Effect{Grant{2, 1, 1, false}}},
	}.run(t)
}

func TestStep_StartsAnewAfterACrash(t *testing.T) {
	t.Parallel()
	script{
		{user(1, "a"), []Effect{Spawn{"a", 1}}},
		{ready(1), []Effect{Loaded{1}, Grant{1, 1, 1, true}}},
		{user(2, "a"), nil},
		{Exited{Gen: 1, Reason: "signal: killed"}, []Effect{Crashed{"a", "a", "signal: killed"}, Spawn{"a", 2}}},
		{Returned{Gen: 1, Slots: 1}, nil}, // of the dead process; it must not free a slot of the new one
		{ready(2), []Effect{Loaded{2}, Grant{2, 2, 1, true}}},
		{user(3, "a"), nil},
	}.run(t)
}

func TestStep_TriesAnotherPortButNotForEver(t *testing.T) {
	t.Parallel()
	taken := func(gen uint64) Signalled { return Signalled{gen, Signal{Kind: SignalPortTaken}} }
	script{
		{user(1, "a"), []Effect{Spawn{"a", 1}}},
		{taken(1), nil},
		{Exited{Gen: 1, Reason: "exit status 1"}, []Effect{Spawn{"a", 2}}},
		{taken(2), nil},
		{Exited{Gen: 2, Reason: "exit status 1"}, []Effect{Spawn{"a", 3}}},
		{taken(3), nil},
		{Exited{Gen: 3, Reason: "exit status 1"}, []Effect{Refuse{1, Error{Kind: LoadFailed, Message: "The model a could not be loaded: exit status 1"}}}},
	}.run(t)
}

func TestStep_UnloadsABusyInstanceWhenItIsDone(t *testing.T) {
	t.Parallel()
	script{
		{user(1, "a"), []Effect{Spawn{"a", 1}}},
		{ready(1), []Effect{Loaded{1}, Grant{1, 1, 1, true}}},
		{unloader(2, "a"), nil},
		{user(3, "a"), nil}, // waits for the next instance, not for this one
		{unloader(4, "a"), nil},
		{Returned{Gen: 1, Slots: 1}, []Effect{Stop{1, ForRequest}}},
		{Exited{Gen: 1, Reason: "it was told to stop"}, []Effect{Grant{Waiter: 2}, Grant{Waiter: 4}, Spawn{"a", 2}}},
		{ready(2), []Effect{Loaded{2}, Grant{3, 2, 1, true}}},
		{unloader(5, "nobody"), []Effect{Refuse{5, UnknownInstance("nobody")}}},
	}.run(t)
}

func TestStep_UnloadEndsALoad(t *testing.T) {
	t.Parallel()
	script{
		{loader(1, "a"), []Effect{Spawn{"a", 1}}},
		{unloader(2, "a"), []Effect{Refuse{1, Error{Kind: LoadFailed, Message: "The model a was unloaded while it was loading."}}, Stop{1, ForRequest}}},
		{Exited{Gen: 1, Reason: "it was told to stop"}, []Effect{Grant{Waiter: 2}}},
	}.run(t)
}

func TestStep_NeverLoadsWhereItMayNot(t *testing.T) {
	t.Parallel()
	strict := user(1, "a")
	strict.Waiter.MayLoad = false
	script{
		{strict, []Effect{Refuse{1, notLoaded("a")}}},
		{loader(2, "a"), []Effect{Spawn{"a", 1}}},
		{strict, nil}, // it is loading anyway
		{ready(1), []Effect{Loaded{1}, Grant{Waiter: 2, Gen: 1, SawLoad: true}, Grant{1, 1, 1, true}}},
	}.run(t)
}

func TestStep_EnsureUsesWhatIsThere(t *testing.T) {
	t.Parallel()
	ensure := func(id uint64) Asked {
		return Asked{Waiter{ID: id, Kind: WaitLoaded, Demand: Demand{Key: "a", Spec: specOf("a", 1), MayLoad: true}}}
	}
	script{
		{ensure(1), []Effect{Spawn{"a", 1}}},
		{ensure(2), nil},
		{ready(1), []Effect{Loaded{1}, Grant{Waiter: 1, Gen: 1, SawLoad: true}, Grant{Waiter: 2, Gen: 1, SawLoad: true}}},
		{user(3, "a"), []Effect{Grant{3, 1, 1, false}}},
		{ensure(4), []Effect{Grant{Waiter: 4, Gen: 1}}}, // loaded is loaded, busy or not
	}.run(t)
}

func TestStep_GivingUpEndsOneWaitOnly(t *testing.T) {
	t.Parallel()
	gone := Error{Kind: Cancelled, Message: "the caller gave up"}
	script{
		{user(1, "a"), []Effect{Spawn{"a", 1}}},
		{user(2, "a"), nil},
		{GaveUp{1}, []Effect{Refuse{1, gone}}},
		{GaveUp{1}, nil},
		{ready(1), []Effect{Loaded{1}, Grant{2, 1, 1, true}}},
		{GaveUp{2}, nil}, // too late: who gave up gives the slot back
	}.run(t)
}

func TestStep_ClosesWithNobodyLeftWaiting(t *testing.T) {
	t.Parallel()
	st := script{
		{user(1, "a"), []Effect{Spawn{"a", 1}}},
		{loader(2, "b"), []Effect{Spawn{"b", 2}}},
		{ready(2), []Effect{Loaded{2}, Grant{Waiter: 2, Gen: 2, SawLoad: true}}},
		{unloader(3, "b"), []Effect{Stop{2, ForRequest}}},
		{Closed{}, []Effect{Refuse{1, ErrClosing}, Stop{1, ForClosing}}},
		{user(4, "a"), []Effect{Refuse{4, ErrClosing}}},
		{Exited{Gen: 2, Reason: "it was told to stop"}, []Effect{Grant{Waiter: 3}}},
		{Exited{Gen: 1, Reason: "it was told to stop"}, nil},
	}.run(t)
	if len(st.Instances) != 0 || len(st.Waiters) != 0 {
		t.Errorf("%d instances and %d waiters are left", len(st.Instances), len(st.Waiters))
	}
}

func TestStep_ProgressNeverFalls(t *testing.T) {
	t.Parallel()
	st := &State{}
	Step(st, user(1, "a"), noon)
	for _, p := range []struct{ said, want float64 }{{0, 0}, {0.5, 0.5}, {0.2, 0.5}, {7, 1}} {
		Step(st, Signalled{1, Signal{Kind: SignalProgress, Progress: p.said}}, noon)
		if got := st.Instances[0].Progress; got != p.want {
			t.Errorf("after %v: progress %v, want %v", p.said, got, p.want)
		}
	}
	Step(st, ready(1), noon.Add(3*time.Second))
	if got := st.Instances[0].LoadTime; got != 3*time.Second {
		t.Errorf("load time %v, want 3s", got)
	}
}
