package schedule

import (
	"fmt"
	"testing"
	"time"
)

// pacing is a model with a limited queue that is always full.
type pacing struct {
	*play
	next uint64
}

func newPacing(t *testing.T, waiting int) *pacing {
	t.Helper()
	p := &pacing{newPlay(t, Limits{Instances: 1}), 1}
	p.busy(specOf("a", 1))
	for range waiting {
		p.join()
	}
	return p
}

func (p *pacing) join() {
	p.t.Helper()
	p.at(user(p.next, "a"))
	p.next++
}

// serve has so many waiters served, one every so often, each followed by a newcomer.
func (p *pacing) serve(n int, every time.Duration) {
	p.t.Helper()
	for range n {
		p.pass(every)
		first := p.st.Waiters[0].ID
		p.at(back(1), Grant{first, 1, 1, first <= 0})
		p.join()
	}
}

func (p *pacing) retryAfter() time.Duration {
	return p.st.retryAfter("a", len(p.st.Waiters), p.now)
}

func TestPace_RetryAfterFollowsTheQueue(t *testing.T) {
	t.Parallel()
	p := newPacing(t, 10)
	for _, step := range []struct {
		why   string
		serve int
		every time.Duration
		then  time.Duration // passes with nobody served
		want  time.Duration
	}{
		{"one was served, a second after it came", 0, 0, 0, 5 * time.Second},
		{"none was since", 0, 0, 7 * time.Second, 40 * time.Second},
		{"half of ten, at two seconds each", 100, 2 * time.Second, 0, 10 * time.Second},
		{"it has become quicker", 600, 300 * time.Millisecond, 0, 2 * time.Second},
		{"no less than a second", 6000, 50 * time.Millisecond, 0, time.Second},
		{"it has become slower", 30, 8 * time.Second, 0, 40 * time.Second},
		{"it stands still", 0, 0, 40 * time.Second, 60 * time.Second},
		{"no longer than a minute", 10, time.Minute, 0, time.Minute},
	} {
		p.serve(step.serve, step.every)
		p.pass(step.then)
		if got := p.retryAfter(); (got - step.want).Abs() > step.want/5 {
			t.Errorf("%s: %v, want about %v", step.why, got, step.want)
		}
	}
}

// The loads in between count, and so does the time in which another model is served.
func TestPace_RetryAfterCountsLoads(t *testing.T) {
	t.Parallel()
	const batch = 5
	for _, load := range []time.Duration{0, 2 * time.Second, 6 * time.Second} {
		t.Run(fmt.Sprint("loads of ", load), func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, Limits{Instances: 1})
			p.st.lead = 1 // the two models take turns
			id := uint64(0)
			join := func(key string) {
				for range batch {
					id++
					Step(&p.st, user(id, key), p.now)
				}
			}
			join("a")
			join("b")
			for gen := range uint64(20) {
				p.pass(load)
				Step(&p.st, ready(gen+1), p.now)
				for range batch {
					p.pass(time.Second)
					Step(&p.st, back(gen+1), p.now)
				}
				join(p.st.Instances[0].Spec.Model.Key)
				Step(&p.st, stopped(gen+1), p.now)
			}
			if n := p.st.LastGen; n != 21 {
				t.Fatalf("%d loads, want 21", n)
			}
			got, want := p.st.retryAfter("a", 2*batch, p.now), 2*(load+batch*time.Second)
			if got > want*3/2 || got < want*2/3 {
				t.Errorf("%v, want about %v: a batch of the other model, and one of this", got, want)
			}
		})
	}
}

func TestPace_ARequestThatIsServedAtOnceTellsNothing(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.idle(specOf("a", 1))
	before := *p.st.Pace["a"]
	for n := range uint64(10) {
		p.on(user(1+n, "a"), Grant{1 + n, 1, 1, false})
		p.on(back(1))
	}
	if after := *p.st.Pace["a"]; after != before {
		t.Errorf("%+v became %+v", before, after)
	}
}

func TestPace_NobodyHasBeenServedYet(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{})
	p.on(user(1, "a"), Spawn{"a", 1})
	for want, after := range map[time.Duration]time.Duration{time.Second: 0, 9 * time.Second: 9 * time.Second, time.Minute: time.Hour} {
		if got := p.st.retryAfter("a", 100, p.now.Add(after)); got != want {
			t.Errorf("after %v: %v, want %v", after, got, want)
		}
	}
}

// Waiters for another model, even if they wait longer, don't affect this one's pace.
func TestPace_OfOneModelAlone(t *testing.T) {
	t.Parallel()
	p := newPlay(t, Limits{Instances: 1})
	p.busy(specOf("a", 1))
	p.on(user(1, "b"))
	p.pass(20 * time.Second)
	p.on(user(2, "c"))
	p.pass(5 * time.Second)
	if got := p.st.retryAfter("c", 1, p.now); got != 5*time.Second {
		t.Errorf("%v, want the 5s since its first waiter came", got)
	}
}
