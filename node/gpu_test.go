package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/internal/vram"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// gpu is a script of an engine with a GPU. The engine can't write its journal in a sandbox, so its devices are seen only outside.
func gpu(change func(*fakeengine.Script)) *fakeengine.Script {
	s := &fakeengine.Script{Devices: []fakeengine.Device{{Name: "CUDA0", Title: "NVIDIA Example", Total: 8192, Free: 8000}}, Load: fakeengine.Load{OnDevice: 100}}
	if change != nil {
		change(s)
	}
	return s
}

// withGPU is a node with such an engine and the shipped model.
func withGPU(t *testing.T, fake *fakeengine.Engine, s Settings, e EngineSettings) *Node {
	t.Helper()
	n := open(t, withModel(t))
	e.Path = fake.Path
	s.JIT, s.Engines = true, llamaServer(e)
	push(t, n, 1, s)
	return n
}

// load loads the shipped model with the options, and returns the arguments that its engine got.
func load(t *testing.T, n *Node, fake *fakeengine.Engine, o LoadOptions) (supervisor.Info, string) {
	t.Helper()
	target, err := n.Names.Find(t.Context(), "lmcaddy/tinychat")
	if err != nil {
		t.Fatal(err)
	}
	in, err := n.Loads.LoadAt(t.Context(), target, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	var args string
	for _, ev := range fake.Events() {
		if ev.Kind == fakeengine.Started {
			args = strings.Join(ev.Argv, " ")
		}
	}
	return in, args
}

func TestGPU_AModelIsOnIt(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, gpu(nil))
	n := withGPU(t, fake, Settings{GPUMemory: GPUMemory{Each: Budget{Bytes: 4 << 30}}}, EngineSettings{Sandbox: schedule.Off})
	in, args := load(t, n, fake, LoadOptions{})
	if in.Placed() != "CUDA0" || in.IsSplit() || !strings.Contains(args, "--device CUDA0 --fit on --fit-target ") {
		t.Errorf("it is on %q, by %s", in.Placed(), args)
	}
	if on := in.Devices(); len(on) != 2 || on[1].Device != "CUDA0" || on[1].Bytes <= 100<<20 {
		t.Errorf("it takes %v", on)
	}
	o := n.Overview()
	if g := o.GPU("CUDA0"); g == nil || g.Total != 8192<<20 || g.Budget != 4<<30 || !g.IsKnown || g.Free != 8000<<20 {
		t.Errorf("the GPU: %+v", g)
	}
}

// What the GPUs' code needs to be compiled for is done once, before the model is ready.
func TestGPU_ItsCodeIsCompiledDuringTheFirstLoad(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, gpu(nil))
	n := withGPU(t, fake, Settings{}, EngineSettings{Sandbox: schedule.Off})
	asked := func() (n int) {
		for _, ev := range fake.Events() {
			if ev.Kind == fakeengine.Request && ev.Path == "/completion" {
				n++
			}
		}
		return n
	}
	in, _ := load(t, n, fake, LoadOptions{})
	if asked() != 1 {
		t.Errorf("the engine was asked %d times before the model was ready, want once", asked())
	}
	if err := n.Loads.Unload(t.Context(), in.ID); err != nil {
		t.Fatal(err)
	}
	if load(t, n, fake, LoadOptions{}); asked() != 1 {
		t.Errorf("it was asked again, %d times in all", asked())
	}
}

func TestGPU_WhatTheConfigurationChooses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		model     ModelSettings
		args      []string
		has, not  string
		placed    string
		loadFails string
	}{
		"the processor":       {ModelSettings{Devices: []string{NoDevice}}, nil, "--device none", "--fit-target", "the processor", ""},
		"no layers":           {ModelSettings{GPULayers: new(int)}, nil, "--device none", "-ngl", "the processor", ""},
		"some layers":         {ModelSettings{GPULayers: two()}, nil, "--device CUDA0 -ngl 2", "--fit-target", "CUDA0", ""},
		"the GPU":             {ModelSettings{Devices: []string{"CUDA0"}}, nil, "--device CUDA0 --fit on", "", "CUDA0", ""},
		"one that isn't here": {ModelSettings{Devices: []string{"CUDA7"}}, nil, "", "", "", "CUDA7, which the engine llama_server doesn't find. It has: CUDA0"},
		"by arguments":        {ModelSettings{}, []string{"--gpu-layers", "3"}, "--gpu-layers 3", "--device", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakeengine.Install(t, gpu(nil))
			n := withGPU(t, fake, Settings{Models: map[string]ModelSettings{"lmcaddy/tinychat": tt.model}}, EngineSettings{Sandbox: schedule.Off, Args: tt.args})
			if tt.loadFails != "" {
				target, err := n.Names.Find(t.Context(), "lmcaddy/tinychat")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := n.Loads.LoadAt(t.Context(), target, LoadOptions{}, nil); err == nil || !strings.Contains(err.Error(), tt.loadFails) {
					t.Errorf("error %v", err)
				}
				return
			}
			in, args := load(t, n, fake, LoadOptions{})
			if !strings.Contains(args, tt.has) || tt.not != "" && strings.Contains(args, tt.not) || in.Placed() != tt.placed || in.IsSplit() {
				t.Errorf("on %q, split: %t, by %s", in.Placed(), in.IsSplit(), args)
			}
		})
	}
}

func two() *int { n := 2; return &n }

// Only where nobody but the users of this machine is served, and nobody has asked for the sandbox, an engine runs without it for its GPU.
func TestGPU_ASandboxThatHidesIt(t *testing.T) {
	t.Parallel()
	if _, ok := strings.CutPrefix(process.SandboxState(), "landlock"); !ok {
		t.Fatalf("this machine has no sandbox: %s", process.SandboxState())
	}
	for name, tt := range map[string]struct {
		sandbox   schedule.Toggle
		isExposed bool
		uses      bool
		says      string
	}{
		"unset":               {schedule.Auto, false, true, "so it runs without one"},
		"unset, for others":   {schedule.Auto, true, false, "add `sandbox off` to its engine block"},
		"on":                  {schedule.On, false, false, "sandbox_read"},
		"off":                 {schedule.Off, false, true, ""},
		"off, and for others": {schedule.Off, true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakeengine.Install(t, gpu(nil))
			n := withGPU(t, fake, Settings{Exposed: tt.isExposed}, EngineSettings{Sandbox: tt.sandbox})
			target, err := n.Names.Find(t.Context(), "lmcaddy/tinychat")
			if err != nil {
				t.Fatal(err)
			}
			spec, err := n.Loads.spec(t.Context(), target.Model, LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if uses := len(spec.Devices) == 1 && !spec.NoGPU && (spec.Unconfined || spec.NoSandbox != ""); uses != tt.uses || !uses && !spec.NoGPU {
				t.Errorf("devices %v, none: %t, unconfined: %t, %q", spec.Devices, spec.NoGPU, spec.Unconfined, spec.NoSandbox)
			}
			said := strings.Join(n.Devices.Faults(), "\n")
			if !strings.Contains(said, tt.says) || (tt.says == "") != (said == "") || said != "" && !strings.Contains(said, "CUDA0") {
				t.Errorf("it says %q", said)
			}
			isDegraded := slices.ContainsFunc(n.Health(false), func(trouble Trouble) bool {
				return trouble.Code == TroubleGPU && trouble.Message == said && !trouble.Fatal
			})
			if isDegraded != (said != "") {
				t.Errorf("the health: %+v", n.Health(false))
			}
		})
	}
}

// A GPU that falls off the bus: the next load is on the processor, and that is said, until it is there again.
func TestGPU_IsGoneAndComesBack(t *testing.T) {
	t.Parallel()
	driver := filepath.Join(t.TempDir(), "driver")
	write := func() {
		if err := os.WriteFile(driver, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write()
	fake := fakeengine.Install(t, gpu(func(s *fakeengine.Script) { s.Devices[0].Reads = driver }))
	n := withGPU(t, fake, Settings{}, EngineSettings{Sandbox: schedule.Off})
	first, _ := load(t, n, fake, LoadOptions{})
	if first.Placed() != "CUDA0" {
		t.Fatalf("it is on %q", first.Placed())
	}
	if err := os.Remove(driver); err != nil {
		t.Fatal(err)
	}
	second, args := load(t, n, fake, LoadOptions{})
	if second.Placed() != "the processor" || !second.IsSplit() || !strings.Contains(args, "--device none") {
		t.Errorf("the second is on %q, by %s", second.Placed(), args)
	}
	testkit.Eventually(t, "it is said", func() bool {
		return slices.ContainsFunc(n.Devices.Faults(), func(fault string) bool { return strings.Contains(fault, "doesn't find CUDA0 any more") })
	})
	write()
	if third, _ := load(t, n, fake, LoadOptions{}); third.Placed() != "CUDA0" {
		t.Errorf("the third is on %q", third.Placed())
	}
	if faults := n.Devices.Faults(); len(faults) > 0 {
		t.Errorf("it is back, and %q is said", faults)
	}
}

// What the engine says of the room that it finds counts, and is said.
func TestGPU_AnEngineThatFindsLessRoom(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, gpu(func(s *fakeengine.Script) { s.Load.Reduced = true }))
	n := withGPU(t, fake, Settings{}, EngineSettings{Sandbox: schedule.Off})
	in, _ := load(t, n, fake, LoadOptions{})
	if diff := cmp.Diff("27 of 33 layers on CUDA0 (90 % of the weights)", in.Placed()); diff != "" || !in.IsSplit() {
		t.Error(diff)
	}
}

// A context that isn't given is as long as the GPU has room for, not the machine; so are the slots.
func TestGPU_TheContextFollowsItsRoom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		budget            int64
		context, parallel int
	}{
		"much room":   {4 << 30, 8192, 4},
		"little room": {contextBytes + 45<<20, 8192, 1},
		"too little":  {contextBytes + 12<<20, 4096, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakeengine.Install(t, gpu(nil))
			n := withGPU(t, fake, Settings{GPUMemory: GPUMemory{Each: Budget{Bytes: tt.budget}}}, EngineSettings{Sandbox: schedule.Off})
			target, err := n.Names.Find(t.Context(), "lmcaddy/tinychat")
			if err != nil {
				t.Fatal(err)
			}
			spec, err := n.Loads.spec(t.Context(), target.Model, LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if spec.ContextLength != tt.context || spec.Parallel != tt.parallel {
				t.Errorf("a context of %d for %d requests, want %d for %d; it takes %d of a GPU", spec.ContextLength, spec.Parallel, tt.context, tt.parallel, spec.Offload)
			}
		})
	}
}

// contextBytes is what the engine takes of a GPU of CUDA in addition to a model.
const contextBytes = 604 << 20

// Reports of drivers are of the engine's GPUs only where there is no doubt which is which.
func TestMatch(t *testing.T) {
	t.Parallel()
	device := func(name, title string, gib int64) process.Device {
		return process.Device{Name: name, Title: title, Memory: gib << 30}
	}
	report := func(name string, gib, free int64) vram.GPU {
		return vram.GPU{Name: name, Total: gib<<30 + 9, Free: free}
	}
	big, small := report("NVIDIA H200", 140, 1), report("NVIDIA T4", 15, 2)
	for name, tt := range map[string]struct {
		gpus    []process.Device
		reports []vram.GPU
		want    []schedule.GPUMemory
	}{
		"one":                       {[]process.Device{device("CUDA0", "NVIDIA H200", 140)}, []vram.GPU{big}, []schedule.GPUMemory{{Device: "CUDA0", Total: big.Total, Free: 1}}},
		"another one is hidden":     {[]process.Device{device("CUDA0", "NVIDIA H200", 140)}, []vram.GPU{small, big}, []schedule.GPUMemory{{Device: "CUDA0", Total: big.Total, Free: 1}}},
		"in another order":          {[]process.Device{device("Vulkan0", "NVIDIA T4", 15), device("Vulkan1", "NVIDIA H200", 140)}, []vram.GPU{big, small}, []schedule.GPUMemory{{Device: "Vulkan0", Total: small.Total, Free: 2}, {Device: "Vulkan1", Total: big.Total, Free: 1}}},
		"two alike":                 {[]process.Device{device("CUDA0", "NVIDIA T4", 15), device("CUDA1", "NVIDIA T4", 15)}, []vram.GPU{small, report("NVIDIA T4", 15, 3)}, []schedule.GPUMemory{{Device: "CUDA0", Total: small.Total, Free: 2}, {Device: "CUDA1", Total: small.Total, Free: 3}}},
		"one of two alike":          {[]process.Device{device("CUDA0", "NVIDIA T4", 15)}, []vram.GPU{small, report("NVIDIA T4", 15, 3)}, nil},
		"of a driver without names": {[]process.Device{device("ROCm0", "AMD Radeon", 16)}, []vram.GPU{report("", 16, 4)}, []schedule.GPUMemory{{Device: "ROCm0", Total: 16<<30 + 9, Free: 4}}},
		"no report":                 {[]process.Device{device("SYCL0", "Intel Arc", 16)}, []vram.GPU{big}, nil},
	} {
		if diff := cmp.Diff(tt.want, match(tt.gpus, tt.reports)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
