package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// onGPU is a Spec of a model that takes so much memory, all of which but 10 a GPU can take.
func onGPU(key string, memory int64) *Spec {
	spec := sized(key, memory)
	spec.Offload, spec.Devices = memory-10, []string{"CUDA0", "CUDA1"}
	return spec
}

// gpuPlay is a play with GPUs, about which a report has just come.
func gpuPlay(t *testing.T, gpus ...GPU) *play {
	t.Helper()
	p := newPlay(t, Limits{Memory: 1000, GPUs: gpus})
	p.st.lead = time.Hour
	return p
}

// free reports what is free of the GPUs, in their order.
func (p *play) free(bytes ...int64) Sampled {
	var ev Sampled
	for i, g := range p.st.Limits.GPUs {
		ev.GPUs = append(ev.GPUs, GPUMemory{g.Name, g.Total, bytes[i]})
	}
	return ev
}

// known makes the last report one of just now.
func (p *play) known() { p.st.SampledAt = p.now.Add(time.Second) }

// load loads an instance and leaves it idle. It returns its generation.
func (p *play) load(spec *Spec) uint64 {
	p.t.Helper()
	p.known()
	return p.idle(spec)
}

// on checks where the instances are, in order.
func (p *play) placed(want ...string) {
	p.t.Helper()
	var got []string
	for _, in := range p.st.Instances {
		got = append(got, in.ID+": "+in.On.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Fatalf("where they are (-want +got):\n%s", diff)
	}
}

func TestGPU_AnIdleModelLeavesForOneThatFits(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 140})
	a := p.load(onGPU("a", 90))
	if claim := p.st.Instances[0].Claim; claim != 10 {
		t.Errorf("it is counted with %d bytes of the machine's memory although the engine tells nothing", claim)
	}
	p.known()
	p.on(asks(1, onGPU("b", 90)), Stop{a, ForRoom})
	p.on(stopped(a), Sample{true})
	p.on(p.free(140), Spawn{"b", 2})
	p.placed("b: CUDA0")
	if in := p.st.Instances[0]; in.Claim != 10 || bytesOf("CUDA0", in.OnGPUs) != 80 {
		t.Errorf("it is counted with %d bytes of the machine's memory, and %v", in.Claim, in.OnGPUs)
	}
}

func TestGPU_ABusyModelIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 140})
	p.known()
	a := p.busy(onGPU("a", 90))
	p.known()
	p.on(asks(1, onGPU("b", 90)))
	p.known()
	p.on(back(a), Stop{a, ForRoom})
}

func TestGPU_ASplitIsForWhatCanNotBeWhole(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 100, Context: 4})
	p.load(onGPU("a", 40))
	p.known()
	p.on(asks(1, onGPU("b", 210)), Stop{1, ForRoom}) // the largest part of it is on the GPU
	p.on(stopped(1), Sample{true})
	p.on(p.free(100), Spawn{"b", 2})
	p.placed("b: 48 % on CUDA0, the rest on the processor")
	if in := p.st.Instances[0]; in.Claim != 210-96 || bytesOf("CUDA0", in.OnGPUs) != 100 {
		t.Errorf("it is counted with %d bytes of the machine's memory, and %v", in.Claim, in.OnGPUs)
	}
}

func TestGPU_ASplitBesideWhatIsPinned(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 140})
	p.load(pinned(onGPU("a", 90)))
	p.known()
	p.on(asks(1, onGPU("b", 130)), Spawn{"b", 2})
	p.placed("a: CUDA0", "b: 50 % on CUDA0, the rest on the processor")
}

// Where nearly nothing would be on the GPU, nothing is.
func TestGPU_TheProcessorWhereThereIsNoRoom(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 140})
	p.load(pinned(onGPU("a", 148)))
	p.known()
	p.on(asks(1, onGPU("b", 130)), Spawn{"b", 2})
	p.placed("a: CUDA0", "b: the processor")
	p.known()
	p.on(asks(2, with(onGPU("c", 1500), func(*Spec) {})), Refuse{2, neverFits(onGPU("c", 1500), &p.st, p.st.kept())})
	if err := neverFits(onGPU("c", 1500), &p.st, p.st.kept()); !strings.Contains(err.Message, "of CUDA0 140 B") || !strings.Contains(err.Message, "gpu_memory") {
		t.Error(err)
	}
}

func TestGPU_OneRatherThanSeveral(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 100}, GPU{Name: "CUDA1", Total: 120})
	p.load(onGPU("a", 60))
	p.load(onGPU("b", 50))
	p.placed("a: CUDA1", "b: CUDA0") // each on that with the most room
	p.known()
	p.on(asks(1, onGPU("c", 170)), Stop{1, ForRoom}, Stop{2, ForRoom}) // too large for one
	p.on(stopped(1), Sample{true})
	p.at(p.free(100, 120))
	p.at(stopped(2), Spawn{"c", 3})
	p.placed("c: CUDA0, CUDA1")
}

// Of two GPUs, that is made free from which fewer models have to leave, even if the other one has more room.
func TestGPU_AsFewAsSuffice(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 100}, GPU{Name: "CUDA1", Total: 100})
	on := func(key string, memory int64, device string) *Spec {
		return with(onGPU(key, memory), func(s *Spec) { s.Devices = []string{device} })
	}
	p.load(on("a", 45, "CUDA0"))
	p.load(on("b", 90, "CUDA1"))
	p.load(on("c", 45, "CUDA0"))
	p.known()
	p.on(asks(1, onGPU("d", 100)), Stop{2, ForRoom})
}

func TestGPU_WhatIsChosen(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 100}, GPU{Name: "CUDA1", Total: 120})
	p.load(with(onGPU("a", 60), func(s *Spec) { s.Devices, s.OnlyOn = []string{"CUDA0"}, true }))
	p.load(with(onGPU("b", 60), func(s *Spec) { s.Devices, s.NoGPU = nil, true }))
	p.load(with(onGPU("c", 60), func(s *Spec) { s.Devices = nil }))
	p.placed("a: CUDA0", "b: the processor", "c: ")
}

// A shorter context is tried before a model that was just used has to leave, but not for a request that needs more.
func TestGPU_AShorterContextRatherThanAnEviction(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		need  int
		whole bool
	}{"a short request": {100, true}, "a long one": {400, false}} {
		p := gpuPlay(t, GPU{Name: "CUDA0", Total: 140})
		p.load(onGPU("a", 90))
		b := with(onGPU("b", 90), func(s *Spec) {
			s.ContextLength, s.Smaller = 512, []Size{{ContextLength: 256, Parallel: 1, Memory: 70, Offload: 60}}
		})
		p.known()
		ask := asks(1, b)
		ask.Waiter.Context.Likely = tt.need
		if tt.whole {
			p.on(ask, Spawn{"b", 2})
			if in := p.st.Instances[1]; in.Spec.ContextLength != 256 {
				t.Errorf("%s: a context of %d", name, in.Spec.ContextLength)
			}
		} else {
			p.on(ask, Stop{1, ForRoom})
		}
	}
}

// Where there clearly is room, a load doesn't wait for the report.
func TestGPU_IsAskedForBesideALoadThatFits(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 200})
	p.load(onGPU("a", 90))
	p.pass(sampleAge)
	p.on(asks(1, onGPU("b", 90)), Sample{true}, Spawn{"b", 2})
	p.at(p.free(120))
	p.pass(sampleAge)
	p.on(asks(2, onGPU("c", 90)), Sample{true}) // what has to leave depends on the report
}

func TestGPU_IsAskedForBeforeALoad(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 200, Budget: 190})
	p.on(asks(1, onGPU("a", 90)), Sample{true})
	p.on(asks(2, onGPU("b", 100)))   // nobody asks twice
	p.on(p.free(100), Spawn{"a", 1}) // 100 are others'
	p.known()
	p.on(ready(1), Loaded{1}, Grant{1, 1, 1, true})
	p.waits(2)
	p.known()
	p.on(back(1), Stop{1, ForRoom})
	p.on(stopped(1), Sample{true})
	p.on(p.free(105), Spawn{"b", 2})
	if margins := p.st.Instances[0].On.Margins; !cmp.Equal(margins, []int64{10}) { // the others have their part already
		t.Errorf("it leaves %v", margins)
	}
}

// The engine leaves of a GPU what the budget doesn't give to models.
func TestGPU_WhatTheBudgetKeepsIsLeft(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 200, Budget: 150})
	p.on(asks(1, onGPU("a", 90)), Sample{true})
	p.on(p.free(190), Spawn{"a", 1})
	if margins := p.st.Instances[0].On.Margins; !cmp.Equal(margins, []int64{50}) {
		t.Errorf("it leaves %v of 190, and may take 140", margins)
	}
}

// What a driver hasn't freed yet of a process that has ended isn't taken for another program's.
func TestGPU_ADriverMayTakeItsTime(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 140})
	a := p.load(onGPU("a", 90))
	p.at(p.free(0)) // for a moment, another program had 60
	p.known()
	p.on(asks(1, onGPU("b", 100)), Stop{a, ForRoom})
	p.on(stopped(a), Sample{true})
	p.on(p.free(60))
	p.due(time.Second, Sample{true})
	p.on(p.free(140), Spawn{"b", 2})
	p.placed("b: CUDA0")
}

func TestGPU_AnotherProgramGetsItsMemory(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 140, Budget: 133})
	a := p.load(onGPU("a", 90))
	p.known()
	p.at(Tick{})
	p.due(resampleAfter+time.Second, Sample{})
	p.at(p.free(60)) // nobody else
	p.due(resampleAfter, Sample{})
	p.at(p.free(7)) // that is left for others to begin with
	p.due(resampleAfter, Sample{})
	p.at(p.free(6), Stop{a, ForOthers}) // it was idle for long enough
}

func TestGPU_ItsMemoryIsNotTakenFromABusyModel(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 140, Budget: 100})
	p.known()
	a := p.busy(onGPU("a", 90))
	p.pass(resampleAfter)
	p.on(Tick{}, Sample{})
	p.at(Sampled{[]GPUMemory{{"CUDA0", 140, 0}}})
	p.st.Held = map[string]int64{"CUDA0": 100}
	p.on(Tick{})
	p.on(back(a))
	p.st.Sampling = true
	p.due(yieldAfter, Stop{a, ForOthers})
}

// If the engine finds less room than was planned, the idle models beside it leave, once.
func TestGPU_TheEngineKnowsBetter(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 200})
	a := p.load(onGPU("a", 90))
	p.known()
	p.on(asks(1, onGPU("b", 90)), Spawn{"b", 2})
	p.on(Signalled{2, Signal{Kind: SignalReduced}}, Stop{2, ForWhole})
	p.on(stopped(2), Stop{a, ForRoom})
	p.on(stopped(a), Sample{true})
	p.on(p.free(200), Spawn{"b", 3})
	c := p.load(with(onGPU("c", 40), func(s *Spec) { s.Model.Key = "c" }))
	p.on(Signalled{3, Signal{Kind: SignalReduced}})
	p.on(unloader(9, "c"), Stop{c, ForRequest})
	p.on(stopped(c), Grant{Waiter: 9})
	p.on(Signalled{3, Signal{Kind: SignalLayers, Layers: 3, AllLayers: 5}})
	p.on(Signalled{3, Signal{Kind: SignalBuffer, Text: "CUDA0", Bytes: 30, Weights: true}})
	p.on(Signalled{3, Signal{Kind: SignalBuffer, Text: "CUDA_Host", Bytes: 5, Weights: true}})
	p.on(Signalled{3, Signal{Kind: SignalBuffer, Text: "CPU_Mapped", Bytes: 5, Weights: true}})
	p.known()
	p.on(ready(3), Loaded{3}, Grant{1, 3, 1, true})
	in := p.st.Instances[0]
	if got, want := in.On.Describe(&in.Applied), "3 of 5 layers on CUDA0 (75 % of the weights)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if in.Claim != 10+RuntimeMemory || bytesOf("CUDA0", in.OnGPUs) != 30 {
		t.Errorf("counted with %d and %v", in.Claim, in.OnGPUs)
	}
}

// A GPU that has fallen off the bus isn't used until the devices are found again.
func TestGPU_IsLost(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 200})
	p.known()
	p.on(asks(1, onGPU("a", 90)), Spawn{"a", 1})
	p.on(Signalled{1, Signal{Kind: SignalNoDevice}})
	p.on(stopped(1), Spawn{"a", 2})
	p.placed("a: the processor")
	p.on(ready(2), Loaded{2}, Grant{1, 2, 1, true})
	p.on(Configured{Limits: p.st.Limits})
	p.known()
	p.on(asks(2, onGPU("b", 90)), Spawn{"b", 3})
	p.placed("a: the processor", "b: CUDA0")
}

// What is free while a model is loaded or stopped tells only how much other programs hold at least. What a process takes beyond its buffers isn't theirs.
func TestGPU_WhatOthersHold(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 200, Context: 4})
	held := func(want int64) {
		t.Helper()
		if got := p.st.Held["CUDA0"]; got != want {
			t.Fatalf("others hold %d bytes, want %d", got, want)
		}
	}
	p.on(asks(1, onGPU("a", 90)), Sample{true})
	p.on(p.free(150), Spawn{"a", 1})
	held(50)
	p.pass(resampleAfter)
	p.on(Tick{}, Sample{})
	p.on(p.free(140))
	held(50) // the engine has taken 10 of its 84
	p.on(ready(1), Loaded{1}, Grant{1, 1, 1, true})
	p.pass(resampleAfter)
	p.on(Tick{}, Sample{})
	p.on(p.free(200 - 84 - 4 - 7))
	held(7)
}

// An engine that says nothing of layers, and has no buffer on the GPU, isn't on it.
func TestGPU_NothingIsOnIt(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 200})
	p.known()
	p.on(asks(1, onGPU("a", 90)), Spawn{"a", 1})
	p.on(Signalled{1, Signal{Kind: SignalBuffer, Text: "CPU", Bytes: 80, Weights: true}})
	p.on(ready(1), Loaded{1}, Grant{1, 1, 1, true})
	in := p.st.Instances[0]
	if got := in.On.Describe(&in.Applied); got != "the processor" || !in.Applied.IsShort(&in.On) {
		t.Errorf("it is said to be on %q", got)
	}
	if len(in.OnGPUs) > 0 {
		t.Errorf("it is counted with %v", in.OnGPUs)
	}
}

// A load is counted with what the same one took, on the GPU as in the machine's memory.
func TestGPU_WhatWasMeasuredCounts(t *testing.T) {
	t.Parallel()
	p := gpuPlay(t, GPU{Name: "CUDA0", Total: 200, Context: 4})
	a := p.load(onGPU("a", 90))
	p.on(Signalled{a, Signal{Kind: SignalBuffer, Text: "CUDA0", Bytes: 130}})
	p.on(Signalled{a, Signal{Kind: SignalBuffer, Text: "CUDA_Host", Bytes: 20}})
	p.on(Measured{a, 0})
	if in := p.st.Instances[0]; in.Claim != 20+RuntimeMemory || bytesOf("CUDA0", in.OnGPUs) != 134 {
		t.Fatalf("counted with %d and %v", in.Claim, in.OnGPUs)
	}
	p.st.Limits.Memory = 0
	if diff := cmp.Diff(modelSize{130 + 20 + RuntimeMemory, 130}, p.st.sizeOf(onGPU("a", 90)), cmp.AllowUnexported(modelSize{})); diff != "" {
		t.Error(diff)
	}
}
