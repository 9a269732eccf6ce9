package schedule

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var schedules = flag.Uint64("schedules", 1000, "how many random schedules to play")

// world plays everything around Step: callers that ask, give up and return, processes that load, grow, fail, hang and die,
// settings that change and time that passes, all at random; and it checks after each step what must hold of any schedule.
type world struct {
	t       *testing.T
	seed    uint64
	rand    *rand.Rand
	st      State
	now     time.Time
	trail   []happening
	waiting map[uint64]Waiter
	leases  []Grant         // granted slots, to be returned
	alive   map[uint64]bool // processes, by generation; whether it is to stop
	asked   uint64
	slots   slotWorld
	samples int // that were asked for and not answered
}

type happening struct {
	event   Event
	effects []Effect
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), now: noon, waiting: map[uint64]Waiter{}, alive: map[uint64]bool{}, slots: newSlotWorld(),
	}
	w.st.Limits = w.limits()
	return w
}

// limits are such that every single model fits, but for a few that never do.
func (w *world) limits() Limits {
	return Limits{GPUs: w.gpus(), Instances: w.rand.IntN(4), Memory: int64(w.rand.IntN(3)) * 150, Queue: w.rand.IntN(3) * 6, SaveTokens: 256 * w.rand.IntN(3), SaveAfter: []time.Duration{0, time.Millisecond, time.Second}[w.rand.IntN(3)], Node: []string{"", "here"}[w.rand.IntN(2)]}
}

// gpus are none, or up to three.
func (w *world) gpus() []GPU {
	var all []GPU
	for i := range max(0, w.rand.IntN(7)-3) {
		all = append(all, GPU{Name: fmt.Sprint("CUDA", i), Total: 60 + int64(w.rand.IntN(3))*40, Budget: int64(w.rand.IntN(2)) * 80, Context: int64(w.rand.IntN(6))})
	}
	return all
}

// spec is of a model of 40 to 100 units of memory.
func (w *world) spec(key string) *Spec {
	spec := specOf(key, 1+w.rand.IntN(3))
	spec.Memory = 40 + 30*int64(key[0]-'a')
	spec.ContextLength = 256 + 256*w.rand.IntN(2)
	spec.TTL = time.Duration(w.rand.IntN(3)) * time.Second
	spec.AutoRestart = w.rand.IntN(4) == 0
	spec.Pinned = w.rand.IntN(40) == 0
	spec.Private, spec.Slotted = w.rand.IntN(4) == 0, w.rand.IntN(4) > 0
	spec.PromptCache = int64(w.rand.IntN(2) * 1000)
	if w.rand.IntN(20) == 0 {
		draft := specOf("d", 1).Model
		spec.Draft = &draft
	}
	if w.rand.IntN(50) == 0 {
		spec.Memory = 1000
	}
	if w.rand.IntN(3) > 0 {
		spec.Devices = []string{"CUDA0", "CUDA1", "CUDA2"}[:1+w.rand.IntN(3)]
		spec.Offload = spec.Memory - int64(w.rand.IntN(30))
	}
	for n := spec.Parallel - 1; n > 0 && w.rand.IntN(2) == 0; n-- {
		spec.Smaller = append(spec.Smaller, Size{Parallel: n, Memory: spec.Memory * int64(n) / 3, Offload: spec.Offload * int64(n) / 3})
	}
	if len(spec.Devices) > 0 && w.rand.IntN(2) == 0 {
		spec.Smaller = append(spec.Smaller, Size{ContextLength: 128, Parallel: 1, Memory: spec.Memory / 4, Offload: spec.Offload / 4})
	}
	return spec
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, h := range w.trail {
		line := fmt.Sprintf("%T%+v", h.event, h.event)
		for _, e := range h.effects {
			line += fmt.Sprintf(" | %T%+v", e, e)
		}
		w.t.Log(strings.ReplaceAll(line, "supervisor.", ""))
	}
	w.t.Fatalf("seed %d: "+format, append([]any{w.seed}, args...)...)
}

func (w *world) step(ev Event) {
	w.now = w.now.Add(time.Millisecond)
	busy := map[uint64]int{}
	loading := map[uint64]bool{}
	for _, in := range w.st.Instances {
		busy[in.Gen] = in.InUse
		loading[in.Gen] = in.Status.IsLoading()
	}
	if r, ok := ev.(Returned); ok {
		busy[r.Gen] -= r.Slots
	}
	if sig, ok := ev.(Signalled); ok && sig.Signal.Kind == SignalReady {
		delete(loading, sig.Gen)
	}
	effects := Step(&w.st, ev, w.now)
	w.trail = append(w.trail, happening{ev, effects})
	for _, e := range effects {
		w.effect(e, busy, loading)
	}
	w.check()
}

func (w *world) effect(e Effect, busy map[uint64]int, loading map[uint64]bool) {
	switch e := e.(type) {
	case Spawn:
		if _, ok := w.alive[e.Gen]; ok {
			w.fail("process %d is started twice", e.Gen)
		}
		w.alive[e.Gen] = false
		w.checkRoom(e.Gen)
	case Stop:
		w.checkStop(e, busy, loading)
	case Grant:
		w.answered(e.Waiter)
		if e.Slots > 0 {
			w.checkSlots(e)
			w.leases = append(w.leases, e)
		}
	case Save:
		w.checkSave(e)
	case Sample:
		if w.samples++; w.samples > 1 {
			w.fail("the GPUs are asked for twice at a time")
		}
	case Refuse:
		w.answered(e.Waiter)
	}
}

// checkStop checks that only what may be ended is.
func (w *world) checkStop(e Stop, busy map[uint64]int, loading map[uint64]bool) {
	in := w.st.Find(e.Gen)
	switch {
	case w.alive[e.Gen]:
		w.fail("process %d is stopped twice", e.Gen)
	case e.Reason == ForClosing:
	case busy[e.Gen] > 0 && e.Reason != ForSilence:
		w.fail("process %d is stopped for %s while it is busy", e.Gen, e.Reason)
	case loading[e.Gen] && e.Reason == ForWhole && in.On.Whole:
	case loading[e.Gen] && e.Reason != ForRequest && e.Reason != ForSilence:
		w.fail("process %d is stopped for %s while it is loading", e.Gen, e.Reason)
	case in.Spec.Pinned && (e.Reason == ForRoom || e.Reason == ForOthers):
		w.fail("the pinned instance %s is evicted", in.ID)
	}
	w.alive[e.Gen] = true
}

// checkRoom checks that what is launched fits beside all that hasn't ended, as far as that is known.
func (w *world) checkRoom(gen uint64) {
	in := w.st.Find(gen)
	if in == nil || in.Attempts > 0 {
		return // it has its room already
	}
	l := w.st.Limits
	here := slices.DeleteFunc(slices.Clone(w.st.Instances), (*Instance).IsRemote)
	if n := len(here); l.Instances > 0 && n > l.Instances {
		w.fail("%d instances, of which there may be %d", n, l.Instances)
	}
	var sum int64
	for _, in := range w.st.Instances {
		sum += in.Claim
	}
	if l.Memory > 0 && sum > l.Memory {
		w.fail("%d bytes of %d are taken", sum, l.Memory)
	}
	taken := w.st.taken(exists)
	for _, d := range in.OnGPUs {
		if g := l.gpu(d.Device); bytesOf(g.Name, taken.gpus) > w.st.limitOf(g) {
			w.fail("%d bytes of %d are taken of %s", bytesOf(g.Name, taken.gpus), w.st.limitOf(g), g.Name)
		}
	}
	w.checkSplit(in)
}

// checkSplit checks that a model that is split can't wholly be on GPUs in its size, and that what could have made room for it has left.
func (w *world) checkSplit(in *Instance) {
	gpus := w.st.GPUsOf(in.Spec)
	if len(gpus) == 0 || !in.On.IsPartial() {
		return
	}
	fixed := w.st.kept()
	for _, group := range w.st.groups(gpus, load{}) {
		need := w.st.whole(in.Spec, group, modelSize{in.Spec.Memory, in.Spec.Offload}).need
		if w.st.fits(fixed.plus(need), need) {
			w.fail("%s is split, and could be on %v", in.ID, need.gpus)
		}
	}
	for _, other := range w.st.Instances {
		if other != in && other.InUse == 0 && other.isEvictable() && len(other.OnGPUs) > 0 && !in.On.Processor && in.On.Share < 1 &&
			slices.ContainsFunc(other.OnGPUs, func(d DeviceMemory) bool { return d.Bytes > 0 && bytesOf(d.Device, in.OnGPUs) > 0 }) {
			w.fail("%s is split beside %s, which is idle", in.ID, other.ID)
		}
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
	known := 0
	perKey := map[string]int{}
	for _, waiter := range w.st.Waiters {
		if waiter.Kind == WaitRestart {
			continue
		}
		known++
		if waiter.Kind == WaitSlots {
			perKey[waiter.Key]++
		}
		if !w.isHopeful(waiter) {
			w.fail("waiter %+v waits for nothing", *waiter)
		}
		w.checkIdle(waiter)
	}
	if known != len(w.waiting) {
		w.fail("%d waiters are known, %d wait", known, len(w.waiting))
	}
	w.checkDue()
	w.checkLeaving()
}

// isHopeful reports whether something that is in progress can end the wait: a lease that will be returned, a process that will
// become ready or end, or time.
func (w *world) isHopeful(waiter *Waiter) bool {
	if len(w.leases) > 0 || len(w.slots.saves) > 0 || w.samples > 0 || !w.st.Deadline(w.now).IsZero() {
		return true
	}
	for _, in := range w.st.Instances {
		if in.Status != Ready || (waiter.Kind == WaitUnload && in.Gen == waiter.Gen) {
			return true
		}
	}
	return false
}

func (w *world) ask() {
	w.asked++
	key := string(rune('a' + w.rand.IntN(3)))
	waiter := Waiter{ID: w.asked, Demand: Demand{Key: key, Spec: w.spec(key), Slots: 1 + w.rand.IntN(2), MayLoad: w.rand.IntN(8) > 0, Priority: w.rand.IntN(6) == 0, Owner: []string{"", "x", "y"}[w.rand.IntN(3)]}}
	switch w.rand.IntN(10) {
	case 0:
		waiter.Kind = WaitLoad
	case 1:
		waiter.Kind, waiter.Slots = WaitLoaded, 0
	case 2:
		waiter = Waiter{ID: w.asked, Kind: WaitUnload, Demand: Demand{Instance: w.name(key)}}
	case 3:
		waiter.Instance = w.name(key)
	case 4:
		draft := specOf("d", 1).Model
		waiter.Draft, waiter.Spec.Draft = "d", &draft
	case 5:
		waiter.Context = ContextNeed{Likely: w.rand.IntN(600), Safe: w.rand.IntN(1200)}
	}
	if w.rand.IntN(4) > 0 {
		waiter.Prompt = w.prompt()
		waiter.Conversation, waiter.Unsaved = waiter.Owner+"'s", w.rand.IntN(8) == 0
	}
	w.waiting[w.asked], w.slots.asked[w.asked] = waiter, &waiter
	w.step(Asked{waiter})
}

// name is that of an instance of a model, which may be there.
func (w *world) name(key string) string {
	return []string{"", "", "", "", "r/"}[w.rand.IntN(5)] + key + []string{"", "", ":2", ":3"}[w.rand.IntN(4)]
}

// gens are the processes that live, in order, so that a seed is a schedule.
func (w *world) gens() []uint64 {
	gens := make([]uint64, 0, len(w.alive))
	for gen := range w.alive {
		gens = append(gens, gen)
	}
	slices.Sort(gens)
	return gens
}

// anything makes one thing happen.
func (w *world) anything() {
	gens := w.gens()
	if w.samples > 0 && w.rand.IntN(3) == 0 {
		w.report()
		return
	}
	switch n := w.rand.IntN(32); {
	case n < 9:
		w.ask()
	case n < 13 && len(w.leases) > 0:
		w.giveBack(w.rand.IntN(len(w.leases)))
	case n < 15 && w.asked > 0:
		w.step(GaveUp{1 + w.rand.Uint64N(w.asked)})
	case n < 19 && len(gens) > 0:
		w.say(gens[w.rand.IntN(len(gens))])
	case n < 20 && len(gens) > 0:
		w.step(Condemned{gens[w.rand.IntN(len(gens))], "it hangs"})
	case n < 22 && len(gens) > 0:
		w.exit(gens[w.rand.IntN(len(gens))])
	case n < 23:
		w.pass()
	case n < 24:
		w.now = w.now.Add(time.Duration(w.rand.IntN(15)) * time.Second) // a lead may be over
		w.step(Tick{})
	case n < 25 && len(gens) > 0:
		w.step(EndAsked{gens[w.rand.IntN(len(gens))]})
	case n < 28 && len(w.slots.saves) > 0:
		w.endSave(w.rand.IntN(len(w.slots.saves)))
	case n < 29:
		w.forget()
	case n < 31:
		w.reach()
	default:
		w.configure()
	}
}

// report says what is free of the GPUs: what instances and other programs don't take, as far as anything is known.
func (w *world) report() {
	var ev Sampled
	taken := w.st.taken(exists)
	for _, g := range w.st.Limits.GPUs {
		if w.rand.IntN(8) > 0 {
			free := g.Total - bytesOf(g.Name, taken.gpus) - int64(max(0, w.rand.IntN(60)-30))
			ev.GPUs = append(ev.GPUs, GPUMemory{g.Name, g.Total, max(0, free)})
		}
	}
	w.samples--
	w.step(ev)
}

func (w *world) say(gen uint64) {
	switch w.rand.IntN(14) {
	case 10:
		w.step(Signalled{gen, Signal{Kind: SignalBuffer, Text: "CUDA0", Bytes: int64(w.rand.IntN(60))}})
	case 11:
		w.step(Signalled{gen, Signal{Kind: SignalReduced}})
	case 12:
		w.step(Signalled{gen, Signal{Kind: SignalNoDevice}})
	case 13:
		w.step(Signalled{gen, Signal{Kind: SignalLayers, Layers: w.rand.IntN(4), AllLayers: 4}})
	case 0:
		w.step(Signalled{gen, Signal{Kind: SignalPortTaken}})
	case 1:
		w.step(Signalled{gen, Signal{Kind: SignalOutOfMemory}})
	case 2:
		w.step(Measured{gen, int64(w.rand.IntN(120))})
	case 3:
		w.step(Signalled{gen, Signal{Kind: SignalBuffer, Bytes: int64(w.rand.IntN(60))}})
	case 4:
		w.step(Signalled{gen, Signal{Kind: SignalTrouble, Text: "it lacks something"}})
	default:
		w.step(Signalled{gen, Signal{Kind: SignalReady}})
		w.step(Savable{gen})
	}
}

// pass lets time pass, to the next deadline at most.
func (w *world) pass() {
	if at := w.st.Deadline(w.now); !at.IsZero() {
		w.now = at
	}
	w.step(Tick{})
	if at := w.st.Deadline(w.now); !at.IsZero() && !at.After(w.now) {
		w.fail("a Tick at %v is followed by another at %v", w.now, at)
	}
}

func (w *world) configure() {
	specs := map[uint64]*Spec{}
	for _, in := range w.st.Instances {
		if w.rand.IntN(2) == 0 {
			spec := w.spec(in.Spec.Model.Key)
			spec.ContextLength = 256 * (1 + w.rand.IntN(2))
			specs[in.Gen] = spec
		}
	}
	w.step(Configured{w.limits(), specs})
}

// reach lets something happen to a remote.
func (w *world) reach() {
	remote := []string{"r", "s"}[w.rand.IntN(2)]
	switch n := w.rand.IntN(10); {
	case n < 2:
		w.step(w.st.away(remote, "it sleeps"))
	case n < 5 && len(w.leases) > 0:
		l := w.leases[w.rand.IntN(len(w.leases))]
		w.step(Throttled{l.Gen, l.Slots, w.now.Add(time.Duration(w.rand.IntN(5)) * time.Second), ""})
	default:
		var specs []*Spec
		for _, key := range []string{"a", "b", "c"} {
			if w.rand.IntN(3) > 0 {
				spec := remoteSpec(remote, key, w.rand.IntN(5)-2, 2)
				spec.Remote.Peer, spec.Remote.Loaded = w.rand.IntN(2) == 0, w.rand.IntN(3) > 0
				specs = append(specs, spec)
			}
		}
		w.step(Placed{remote, specs, []string{"", "", "it sleeps"}[w.rand.IntN(3)]})
	}
}

func (w *world) exit(gen uint64) {
	delete(w.alive, gen)
	w.slots.saves = slices.DeleteFunc(w.slots.saves, func(s Save) bool { return s.Gen == gen })
	w.leases = slices.DeleteFunc(w.leases, func(l Grant) bool {
		return l.Gen == gen && w.rand.IntN(2) == 0 // returned late, when nobody asks any more; the others now and then
	})
	w.step(Exited{Gen: gen, Reason: "it died", Killed: w.rand.IntN(3) == 0, NoFiles: []string{7: "no files"}[w.rand.IntN(8)]})
}

// settle lets everything that is in progress come to its end, and checks that nobody waits any more.
func (w *world) settle() {
	for rounds := 0; len(w.waiting) > 0; rounds++ {
		if rounds > 10_000 {
			w.fail("%d wait for ever", len(w.waiting))
		}
		for len(w.leases) > 0 {
			w.giveBack(0)
		}
		for len(w.slots.saves) > 0 {
			w.endSave(0)
		}
		for w.samples > 0 {
			w.report()
		}
		for _, gen := range w.gens() {
			switch in := w.st.Find(gen); {
			case w.alive[gen]:
				w.exit(gen)
			case in != nil && in.Status.IsLoading():
				w.step(Signalled{gen, Signal{Kind: SignalReady}})
			}
		}
		w.pass()
	}
}

// end closes, returns what is lent or not, lets every process end once it is stopped, and checks that nothing is left.
func (w *world) end() {
	w.step(Closed{})
	for len(w.leases) > 0 && w.rand.IntN(4) > 0 {
		w.giveBack(0)
	}
	for len(w.slots.saves) > 0 && w.rand.IntN(4) > 0 {
		w.endSave(0)
	}
	w.now = w.now.Add(SaveWithin)
	w.step(Tick{})
	for _, gen := range w.gens() {
		if !w.alive[gen] {
			w.fail("process %d isn't stopped %v after the end", gen, SaveWithin)
		}
		w.exit(gen)
	}
	if len(w.st.Instances)+len(w.st.Waiters)+len(w.waiting) > 0 {
		w.fail("left: %d instances, %d waiters, %d callers", len(w.st.Instances), len(w.st.Waiters), len(w.waiting))
	}
}

func TestStep_RandomSchedules(t *testing.T) {
	t.Parallel()
	for seed := range *schedules / fewerSchedules {
		w := newWorld(t, seed)
		for range 200 {
			w.anything()
		}
		if seed%2 == 0 {
			w.settle()
		}
		w.end()
	}
}
