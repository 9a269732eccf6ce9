package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOutlook(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before func(p *play)
		spec   *Spec
		want   Outlook // without Limits
		loads  int     // slots of what is loaded; 0: nothing
	}{
		"nothing is loaded": {func(*play) {}, sized("b", 60), Outlook{Needs: 60, Takes: ram(60)}, 1},
		"there is room":     {func(p *play) { p.idle(sized("a", 40)) }, sized("b", 60), Outlook{Taken: ram(40), Needs: 60, Takes: ram(60)}, 1},
		"an idle one is unloaded": {
			func(p *play) { p.idle(sized("a", 50)) }, sized("b", 60), Outlook{Taken: ram(50), Needs: 60, Takes: ram(60), Evicts: []string{"a"}}, 1,
		},
		"as few as are enough": {
			func(p *play) {
				p.idle(sized("a", 30))
				p.idle(sized("b", 30))
				p.idle(sized("c", 30))
			},
			sized("d", 50),
			Outlook{Taken: ram(90), Needs: 50, Takes: ram(50), Evicts: []string{"a", "b"}},
			1,
		},
		"a busy one is waited for": {
			func(p *play) { p.busy(sized("a", 50)) }, sized("b", 60), Outlook{Taken: ram(50), Needs: 60, Takes: ram(60), Evicts: []string{"a"}, Waits: true}, 1,
		},
		"one that is going is no eviction": {
			func(p *play) {
				p.busy(sized("a", 50))
				p.on(unloader(9, "a"))
			},
			sized("b", 60),
			Outlook{Needs: 60, Takes: ram(60)},
			1,
		},
		"never": {func(*play) {}, sized("b", 101), Outlook{Needs: 101, Refused: new(Error)}, 0},
		"never beside a pinned one": {
			func(p *play) { p.idle(pinned(sized("a", 50))) }, sized("b", 60), Outlook{Taken: ram(50), Needs: 60, Refused: new(Error)}, 0,
		},
		"in a smaller size, rather than unloading what was just used": {
			func(p *play) { p.idle(sized("a", 60)) }, slotted("b", 4), Outlook{Taken: ram(60), Needs: 50, Takes: ram(40)}, 3,
		},
		"others are made smaller": {
			func(p *play) { p.idle(slotted("a", 8)) }, sized("b", 30), Outlook{Taken: ram(90), Needs: 30, Takes: ram(30), Shrinks: []string{"a"}}, 1,
		},
		"what was measured counts": {
			func(p *play) {
				gen := p.idle(sized("b", 60))
				p.on(Measured{gen, 70})
			},
			sized("b", 60),
			Outlook{Taken: ram(70), Needs: 70, Measured: true, Takes: ram(70), Evicts: []string{"b"}},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, Limits{Memory: 100})
			tt.before(p)
			before := snapshot(&p.st)
			got := p.st.Outlook(tt.spec, p.now.Add(time.Second))
			if diff := cmp.Diff(before, snapshot(&p.st)); diff != "" {
				t.Errorf("it has changed the state (-before +after):\n%s", diff)
			}
			loads := 0
			if got.Loads != nil {
				loads = got.Loads.Parallel
			}
			if loads != tt.loads {
				t.Errorf("it loads %d slots, want %d", loads, tt.loads)
			}
			if (got.Refused != nil) != (tt.want.Refused != nil) {
				t.Errorf("refused: %v", got.Refused)
			}
			if tt.want.Taken == nil {
				tt.want.Taken = ram(0)
			}
			got.On, got.Limits, got.Loads, got.Refused, tt.want.Refused = Placement{}, Limits{}, nil, nil, nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// ram is so much of the machine's memory.
func ram(bytes int64) []DeviceMemory { return []DeviceMemory{{CPU, bytes}} }

// snapshot is what a look at a state must not change.
func snapshot(st *State) []any {
	var all []any
	for _, in := range st.Instances {
		all = append(all, in.ID, in.Status.String(), string(in.Leaving), in.InUse, in.Claim)
	}
	return append(all, len(st.Waiters), len(st.Failures), st.LastGen)
}

// What is said is what happens.
func TestOutlook_IsWhatALoadDoes(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.idle(sized("a", 40))
	p.idle(sized("b", 40))
	o := p.st.Outlook(sized("c", 50), p.now.Add(time.Second))
	if diff := cmp.Diff([]string{"a"}, o.Evicts); diff != "" {
		t.Fatal(diff)
	}
	p.on(loads(1, sized("c", 50)), Stop{1, ForRoom})
}

func TestLoad_WithAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	named := func(key, id string) *Spec { return with(sized(key, 40), func(s *Spec) { s.ID = id }) }
	taken := func(waiter uint64, id string) Refuse { return Refuse{waiter, idTaken(id)} }
	p := newPlay(t, Limits{Memory: 100})
	p.on(loads(1, named("a", "helper")), Spawn{"helper", 1})
	p.on(loads(2, named("b", "Helper")), taken(2, "Helper"))
	p.on(ready(1), Loaded{1}, Grant{1, 1, 0, true})
	p.on(loads(3, named("a", "a:2")), Spawn{"a:2", 2})
	p.on(ready(2), Loaded{2}, Grant{3, 2, 0, true})
	p.on(asks(4, sized("a", 40)), Grant{4, 1, 1, false})
}

// An id that a waiting load has chosen isn't given to another.
func TestLoad_AnIDIsKeptForWhoWaits(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Memory: 100})
	p.busy(sized("a", 60))
	p.on(loads(1, with(sized("b", 60), func(s *Spec) { s.ID = "a:2" })))
	p.on(loads(2, with(sized("c", 60), func(s *Spec) { s.ID = "a:2" })), Refuse{2, idTaken("a:2")})
	if id := p.st.freeID("a"); id != "a:3" {
		t.Errorf("the next instance of a is %s", id)
	}
}
