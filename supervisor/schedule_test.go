package supervisor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// world plays everything around Step: callers that ask, give up and return, processes that load, fail and die, all at
// random; and it checks after each step what must hold of any schedule.
type world struct {
	t       *testing.T
	rand    *rand.Rand
	st      State
	now     time.Time
	trail   []string
	waiting map[uint64]Waiter
	leases  []Grant         // granted slots, to be returned
	alive   map[uint64]bool // processes, by generation
	asked   uint64
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: noon, waiting: map[uint64]Waiter{}, alive: map[uint64]bool{}}
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trail {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

func (w *world) step(ev Event) {
	w.now = w.now.Add(time.Millisecond)
	busy := map[uint64]int{}
	for _, in := range w.st.Instances {
		busy[in.Gen] = in.InUse
	}
	if r, ok := ev.(Returned); ok {
		busy[r.Gen] -= r.Slots
	}
	effects := Step(&w.st, ev, w.now)
	w.trail = append(w.trail, fmt.Sprintf("%T%+v -> %+v", ev, ev, effects))
	for _, e := range effects {
		w.effect(e, busy)
	}
	w.check()
}

func (w *world) effect(e Effect, busy map[uint64]int) {
	switch e := e.(type) {
	case Spawn:
		if w.alive[e.Gen] {
			w.fail("process %d is started twice", e.Gen)
		}
		w.alive[e.Gen] = true
	case Stop:
		if busy[e.Gen] > 0 && !w.st.Closing {
			w.fail("process %d is stopped while it is busy", e.Gen)
		}
	case Grant:
		w.answered(e.Waiter)
		if e.Slots > 0 {
			w.leases = append(w.leases, e)
		}
	case Refuse:
		w.answered(e.Waiter)
	}
}

func (w *world) answered(id uint64) {
	if _, ok := w.waiting[id]; !ok {
		w.fail("waiter %d is answered twice, or never asked", id)
	}
	delete(w.waiting, id)
}

func (w *world) check() {
	ids := map[string]bool{}
	for _, in := range w.st.Instances {
		if ids[in.ID] {
			w.fail("two instances are called %s", in.ID)
		}
		ids[in.ID] = true
		if in.InUse < 0 || in.InUse > in.Spec.Parallel {
			w.fail("%s lends %d of %d slots", in.ID, in.InUse, in.Spec.Parallel)
		}
	}
	if len(w.st.Waiters) != len(w.waiting) {
		w.fail("%d waiters are known, %d wait", len(w.st.Waiters), len(w.waiting))
	}
	for _, waiter := range w.st.Waiters {
		if !w.isHopeful(waiter) {
			w.fail("waiter %+v waits for nothing", *waiter)
		}
	}
}

// isHopeful tells whether something that is under way can end the wait. An idle instance could have ended it already.
func (w *world) isHopeful(waiter *Waiter) bool {
	exact := w.st.byID(waiter.Instance)
	hope := false
	for _, in := range w.st.Instances {
		switch waiter.Kind {
		case WaitUnload:
			hope = hope || in.Gen == waiter.Gen
		case WaitLoad:
			hope = hope || (in.ID == waiter.Instance && in.Status != Ready)
		default:
			if in.Spec.Model.Key != waiter.Key || (exact != nil && in != exact) {
				continue
			}
			if in.Status == Ready && in.InUse == 0 {
				return false
			}
			hope = true
		}
	}
	return hope
}

func (w *world) ask() {
	w.asked++
	key := string(rune('a' + w.rand.IntN(3)))
	waiter := Waiter{ID: w.asked, Key: key, Spec: specOf(key, 1+w.rand.IntN(3)), Slots: 1 + w.rand.IntN(2), MayLoad: w.rand.IntN(8) > 0}
	switch w.rand.IntN(8) {
	case 0:
		waiter.Kind = WaitLoad
	case 1:
		waiter.Kind, waiter.Slots = WaitLoaded, 0
	case 2:
		waiter = Waiter{ID: w.asked, Kind: WaitUnload, Instance: key}
	case 3:
		waiter.Instance = key + ":2"
	}
	w.waiting[w.asked] = waiter
	w.step(Asked{waiter})
}

// anything makes one thing happen.
func (w *world) anything() {
	gens := make([]uint64, 0, len(w.alive))
	for gen := uint64(1); gen <= w.st.LastGen; gen++ { // in order, so that a seed is a schedule
		if w.alive[gen] {
			gens = append(gens, gen)
		}
	}
	switch n := w.rand.IntN(10); {
	case n < 4:
		w.ask()
	case n < 6 && len(w.leases) > 0:
		w.giveBack(w.rand.IntN(len(w.leases)))
	case n == 6 && w.asked > 0:
		w.step(GaveUp{1 + w.rand.Uint64N(w.asked)})
	case n < 9 && len(gens) > 0:
		kind := SignalReady
		if w.rand.IntN(6) == 0 {
			kind = SignalPortTaken
		}
		w.step(Signalled{gens[w.rand.IntN(len(gens))], Signal{Kind: kind}})
	case len(gens) > 0:
		w.exit(gens[w.rand.IntN(len(gens))])
	}
}

func (w *world) giveBack(i int) {
	lease := w.leases[i]
	w.leases = append(w.leases[:i], w.leases[i+1:]...)
	w.step(Returned{lease.Gen, lease.Slots})
}

func (w *world) exit(gen uint64) {
	delete(w.alive, gen)
	w.step(Exited{gen, "it died"})
}

// end closes, returns what is lent, lets every process end, and sees that nothing is left.
func (w *world) end() {
	w.step(Closed{})
	for len(w.leases) > 0 {
		w.giveBack(0)
	}
	for gen := uint64(1); gen <= w.st.LastGen; gen++ {
		if w.alive[gen] {
			w.exit(gen)
		}
	}
	if len(w.st.Instances)+len(w.st.Waiters)+len(w.waiting) > 0 {
		w.fail("left: %d instances, %d waiters, %d callers", len(w.st.Instances), len(w.st.Waiters), len(w.waiting))
	}
}

func TestStep_RandomSchedules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		w := newWorld(t, seed)
		for range 200 {
			w.anything()
		}
		w.end()
	}
}
