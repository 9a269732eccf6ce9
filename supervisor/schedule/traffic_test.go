package schedule

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// What traffic consists of.
const (
	trafficRequests = 1000
	trafficModels   = 10
	trafficLoaded   = 3                      // models at a time
	trafficSlots    = 4                      // of each
	trafficService  = 500 * time.Millisecond // of a request on average; half to one and a half times that
)

// traffic plays clients and engines around Step in virtual time, and counts what that costs: loads, and how long requests
// wait. The same traffic always goes the same way.
type traffic struct {
	t       testing.TB
	load    time.Duration // of every model; it ends in a twentieth of that
	clients int           // each sends its next request once the last was answered; 0: all requests come at once
	owners  int
	pick    picker

	st     State
	rand   *rand.Rand
	now    time.Time
	queue  upcoming
	seq    uint64
	sent   int
	sender map[uint64]sender // by waiter
	waits  []time.Duration   // sorted in the end
	loads  int
}

// picker chooses the model of a client's next request.
type picker func(r *rand.Rand, client, nth, models int) int

func roundRobin(_ *rand.Rand, client, nth, models int) int { return (client + nth) % models }

func atRandom(r *rand.Rand, _, _, models int) int { return r.IntN(models) }

// zipf asks for the nth model a n-th as often as for the first.
func zipf(r *rand.Rand, _, _, models int) int {
	sum := 0.0
	for n := range models {
		sum += 1 / float64(n+1)
	}
	at := r.Float64() * sum
	for n := range models {
		if at -= 1 / float64(n+1); at < 0 {
			return n
		}
	}
	return models - 1
}

// sender is who sent a request, which of its requests that is, and when.
type sender struct {
	client, nth int
	at          time.Time
}

type upcomingEvent struct {
	at  time.Time
	seq uint64
	do  func()
}

type upcoming []upcomingEvent

func (u upcoming) Len() int { return len(u) }
func (u upcoming) Less(i, j int) bool {
	return cmp.Or(u[i].at.Compare(u[j].at), cmp.Compare(u[i].seq, u[j].seq)) < 0
}
func (u upcoming) Swap(i, j int) { u[i], u[j] = u[j], u[i] }
func (u *upcoming) Push(x any)   { *u = append(*u, x.(upcomingEvent)) }
func (u *upcoming) Pop() any {
	last := (*u)[len(*u)-1]
	*u = (*u)[:len(*u)-1]
	return last
}

func (f *traffic) after(d time.Duration, do func()) {
	f.seq++
	heap.Push(&f.queue, upcomingEvent{f.now.Add(d), f.seq, do})
}

// run plays until every request is answered.
func (f *traffic) run() {
	f.t.Helper()
	f.now, f.rand, f.sender = noon, rand.New(rand.NewPCG(1, 1)), map[uint64]sender{}
	f.st.Limits.Instances = trafficLoaded
	for n := range trafficRequests {
		if f.clients == 0 || n < f.clients {
			f.after(time.Duration(n)*time.Millisecond, func() { f.ask(n, 0) })
		}
	}
	for len(f.queue) > 0 {
		next := heap.Pop(&f.queue).(upcomingEvent)
		f.now = next.at
		next.do()
	}
	if len(f.waits) != trafficRequests {
		f.t.Fatalf("%d of %d requests were answered", len(f.waits), trafficRequests)
	}
	slices.Sort(f.waits)
}

// ask sends a client's nth request.
func (f *traffic) ask(client, nth int) {
	if f.sent == trafficRequests {
		return
	}
	f.sent++
	id := uint64(f.sent)
	asked := asks(id, specOf(fmt.Sprint("m", f.pick(f.rand, client, nth, trafficModels)), trafficSlots))
	asked.Waiter.Owner = fmt.Sprint(client % max(f.owners, 1))
	f.sender[id] = sender{client, nth, f.now}
	f.step(asked)
}

func (f *traffic) step(ev Event) {
	turns := map[uint64]time.Time{}
	for _, w := range f.st.Waiters {
		turns[w.ID] = w.Turn
	}
	for _, e := range Step(&f.st, ev, f.now) {
		switch e := e.(type) {
		case Spawn:
			f.loads++
			f.after(f.load, func() { f.step(ready(e.Gen)) })
		case Stop:
			if in := f.st.Find(e.Gen); in.InUse > 0 {
				f.t.Fatalf("%s is stopped while %d requests use it", in.ID, in.InUse)
			}
			f.after(f.load/20, func() { f.step(stopped(e.Gen)) })
		case Grant:
			if turn, ok := turns[e.Waiter]; ok {
				f.checkLead(e, turn)
			} else {
				f.checkLead(e, f.now)
			}
			f.granted(e)
		}
	}
}

// checkLead checks that a request that is served has passed nobody by more than the lead: every waiter that came so much
// earlier has a slot to come, or room that is free or being made, or its model has to end before it is loaded again.
func (f *traffic) checkLead(e Grant, turn time.Time) {
	rooms := trafficLoaded - len(f.st.Instances)
	seen := map[string]bool{}
	for _, in := range f.st.Instances {
		seen[in.Spec.Model.Key] = true
		if in.Status.IsLeaving() {
			rooms++
		}
	}
	for _, w := range f.st.Waiters {
		if seen[w.Key] {
			continue
		}
		seen[w.Key] = true
		if rooms--; rooms < 0 && turn.After(w.Turn.Add(f.st.leadOf(w.Key))) {
			f.t.Fatalf("a request of %v is served by %s before one of %v for %s, for which no room is being made",
				turn.Sub(noon), f.st.Find(e.Gen).ID, w.Turn.Sub(noon), w.Key)
		}
	}
}

// granted has a request answered after a while, and its client's next one sent.
func (f *traffic) granted(e Grant) {
	from := f.sender[e.Waiter]
	f.waits = append(f.waits, f.now.Sub(from.at))
	held := trafficService/2 + time.Duration(f.rand.Int64N(int64(trafficService)))
	key := f.st.Find(e.Gen).Spec.Model.Key
	f.after(held, func() {
		f.step(Returned{Gen: e.Gen, Slots: e.Slots, Answered: true, Key: key, Waiter: e.Waiter})
		if f.clients > 0 {
			f.ask(from.client, from.nth+1)
		}
	})
}

// wait is how long a share of the requests waited at most.
func (f *traffic) wait(share float64) time.Duration {
	return f.waits[min(int(share*float64(len(f.waits))), len(f.waits)-1)].Round(100 * time.Millisecond)
}

func (f *traffic) String() string {
	return fmt.Sprintf("%3d loads, waits of %v (half), %v (95%%), %v (all)", f.loads, f.wait(.5), f.wait(.95), f.wait(1))
}

// crowds are the ways in which a thousand requests come for ten models of which three can be loaded.
var crowds = []struct {
	name    string
	clients int
	owners  int
	pick    picker
	most    int // loads, of models that take a second to load
}{
	{"at once, one owner", 0, 1, roundRobin, 10},
	{"at once, ten owners", 0, 10, atRandom, 10},
	{"8 clients in turn", 8, 8, roundRobin, 230},
	{"8 clients at random", 8, 8, atRandom, 510},
	{"32 clients in turn", 32, 32, roundRobin, 45},
	{"32 clients at random", 32, 32, atRandom, 140},
	{"32 clients, skewed", 32, 32, zipf, 135},
	{"100 clients at random", 100, 100, atRandom, 55},
	{"100 clients, skewed", 100, 10, zipf, 55},
}

// Nobody starves, the lead is kept, nothing in use is stopped, and requests for one model are served together.
func TestTraffic(t *testing.T) {
	t.Parallel()
	for _, c := range crowds {
		for _, load := range []time.Duration{time.Second, 10 * time.Second} {
			t.Run(fmt.Sprintf("%s, loads of %v", c.name, load), func(t *testing.T) {
				t.Parallel()
				f := &traffic{t: t, load: load, clients: c.clients, owners: c.owners, pick: c.pick}
				f.run()
				t.Log(f)
				if load == time.Second && f.loads > c.most {
					t.Errorf("%d loads, want at most %d", f.loads, c.most)
				}
			})
		}
	}
}

// What several leads would cost, as times of what a load takes: go test -run '^$' -bench Lead -benchtime 1x ./supervisor
func BenchmarkTraffic_Lead(b *testing.B) {
	for _, load := range []time.Duration{time.Second, 10 * time.Second} {
		for _, c := range crowds {
			for _, times := range []time.Duration{0, 1, 2, 4, 8, 16} {
				b.Run(fmt.Sprintf("%s, loads of %v, lead %d", c.name, load, times), func(b *testing.B) {
					f := &traffic{t: b, load: load, clients: c.clients, owners: c.owners, pick: c.pick}
					f.st.lead = max(times*load, 1)
					f.run()
					b.ReportMetric(float64(f.loads), "loads")
					b.ReportMetric(f.wait(.5).Seconds(), "s-half")
					b.ReportMetric(f.wait(.95).Seconds(), "s-95%")
					b.ReportMetric(f.wait(1).Seconds(), "s-all")
				})
			}
		}
	}
}
