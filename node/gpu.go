package node

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/lmcaddy/lmcaddy/internal/vram"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

const deviceTimeout = 20 * time.Second

// Devices knows what models are computed on, and how much memory they may take.
type Devices struct {
	*base
	engines *Engines
	looking sync.Mutex
	found   atomic.Pointer[foundDevices] // last; nil before that
	budget  atomic.Int64                 // memory for all instances, in bytes; 0: unlimited
}

// foundDevices is what the engines have found to compute on, by the engine's name. It is replaced as a whole.
type foundDevices map[string]engineDevices

// sorted returns the engines' devices by the engines' names; nil has none.
func (f *foundDevices) sorted() iter.Seq2[string, engineDevices] {
	return func(yield func(string, engineDevices) bool) {
		if f == nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(*f)) {
			if !yield(name, (*f)[name]) {
				return
			}
		}
	}
}

type engineDevices struct {
	build string // the path of the executable that was asked
	process.DeviceReport
	refused bool     // GPUs that it sees only without the sandbox aren't used
	lost    []string // names of GPUs that this process has seen, and that are gone
	fault   string   // what is wrong, and what to do; empty: nothing
}

func (d *engineDevices) gpus() []process.Device {
	return slices.DeleteFunc(slices.Clone(d.Usable), func(d process.Device) bool { return d.IsCPU() || d.Unified })
}

// look asks the installed engines which devices they can use, in the sandbox of a launch and outside.
func (ds *Devices) look() {
	ds.looking.Lock()
	defer ds.looking.Unlock()
	ctx, cancel := context.WithTimeout(ds.ctx, deviceTimeout)
	defer cancel()
	settings, found := ds.settings.Load(), foundDevices{}
	if before := ds.found.Load(); before != nil {
		maps.Copy(found, *before)
	}
	for name, e := range ds.engines.byName {
		build, err := e.process.Probe(ctx)
		if err != nil {
			continue // what is loaded may run on what was found before
		}
		es := settings.Engines[name]
		sandbox := es.Sandbox
		if e.NoSandbox != "" {
			sandbox = schedule.Off
		}
		before := found[name]
		d := engineDevices{build: build.Path, DeviceReport: process.FindDevices(ctx, e.process, build, before.build != build.Path,
			sandbox, es.Readable)}
		d.fault, d.refused = JudgeDevices(e.Name, &d.DeviceReport, sandbox, settings.Exposed)
		if d.lost = lost(&before, &d); len(d.lost) > 0 {
			d.fault = strings.TrimSpace(fmt.Sprintf("The engine %s doesn't find %s any more, which makes models many times slower. See "+
				"whether the driver still works (nvidia-smi, vulkaninfo). Each load looks for it again; if it was removed for good, "+
				"restart the server. %s", e.Name, strings.Join(d.lost, ", "), d.fault))
		}
		if d.fault != "" && d.fault != before.fault {
			ds.log.Warn(d.fault, "engine", e.Name)
		}
		found[name] = d
	}
	// before a Spec names the devices; what has failed before still has
	ds.supervisor.Handle(schedule.Configured{Limits: ds.limits(ds.settings.Load(), &found), Specs: map[uint64]*schedule.Spec{}})
	var free []schedule.GPUMemory
	for _, d := range found {
		for _, g := range d.gpus() {
			free = append(free, schedule.GPUMemory{Device: g.Name, Total: g.Memory, Free: g.Free})
		}
	}
	if len(free) > 0 {
		ds.supervisor.Handle(schedule.Sampled{GPUs: free})
	}
	ds.found.Store(&found)
}

// lost returns the names of the GPUs that an engine has found before, or had lost then, and doesn't find now.
func lost(before, now *engineDevices) []string {
	if before.build != now.build {
		return nil
	}
	all := slices.Clone(before.lost)
	for _, d := range before.Outside {
		if !d.IsCPU() && !slices.Contains(all, d.Name) {
			all = append(all, d.Name)
		}
	}
	return slices.DeleteFunc(all, func(name string) bool {
		return slices.ContainsFunc(now.Outside, func(d process.Device) bool { return d.Name == name })
	})
}

// seekLost looks for GPUs that are gone before a model is loaded: they may be back.
func (ds *Devices) seekLost() {
	if ds.hasLost() {
		ds.look()
	}
}

func (ds *Devices) hasLost() bool {
	for _, d := range ds.found.Load().sorted() {
		if len(d.lost) > 0 {
			return true
		}
	}
	return false
}

// JudgeDevices decides about GPUs that an engine sees only without its sandbox, and says what is wrong. refused: it runs on the CPU.
func JudgeDevices(engine string, r *process.DeviceReport, sandbox schedule.Toggle, isExposed bool) (fault string, refused bool) {
	if len(r.Hidden) == 0 {
		return "", false
	}
	lost := strings.Join(r.Hidden, ", ")
	slow := fmt.Sprintf("The engine %s can't use %s in its sandbox, so models run on the processor, many times slower. ", engine, lost)
	switch {
	case sandbox == schedule.On:
		return slow + "Name what its driver needs by sandbox_read in its engine block, or replace `sandbox on` by `sandbox off` " +
			"there.", true
	case isExposed:
		return slow + "It isn't run without the sandbox by itself, since others than the users of this machine are served: to use the " +
			"GPU, add `sandbox off` to its engine block.", true
	default:
		r.Usable, r.Unconfined = r.Outside, true
		return fmt.Sprintf("The engine %s can't use %s in its sandbox, so it runs without one. To keep the sandbox, and run models on the "+
			"processor, add `sandbox on` to its engine block.", engine, lost), false
	}
}

// Faults says which GPUs can't be used as they should, and what to do.
func (ds *Devices) Faults() []string {
	var all []string
	for _, d := range ds.found.Load().sorted() {
		if d.fault != "" {
			all = append(all, d.fault)
		}
	}
	return all
}

// of returns what an engine has found. If nobody has looked yet, or the engine is another now, that is done first.
func (ds *Devices) of(ctx context.Context, e *engine) engineDevices {
	build, err := e.process.Probe(ctx)
	found := ds.found.Load()
	if found == nil || err == nil && (*found)[e.Name].build != build.Path {
		ds.look()
		found = ds.found.Load()
	}
	return (*found)[e.Name]
}

// place sets where a model may be, and whether its engine is confined. The error is one of the supervisor's.
func (ld *Loads) place(ctx context.Context, spec *schedule.Spec, e *engine, ms ModelSettings) error {
	es := ld.settings.Load().Engines[e.Name]
	spec.Unconfined = es.Sandbox == schedule.Off
	if !e.choices(&spec.Model).Devices {
		return nil
	}
	found := ld.devices.of(ctx, e)
	spec.Sandbox = found.Sandbox
	if found.Unconfined && !spec.Unconfined {
		spec.NoSandbox = "its GPU can't be used in it"
	}
	if e.fixed(spec.Args).Placement {
		return nil
	}
	var names []string
	for _, d := range found.gpus() {
		names = append(names, d.Name)
	}
	spec.GPULayers = ms.GPULayers
	switch {
	case slices.Equal(ms.Devices, []string{NoDevice}), ms.GPULayers != nil && *ms.GPULayers == 0:
		spec.NoGPU = len(found.Outside) > 0
		return nil
	case found.refused:
		spec.NoGPU = true
		return nil
	case ms.Devices == nil:
		spec.Devices = names
		return nil
	}
	spec.Devices, spec.OnlyOn = ms.Devices, true
	for _, name := range ms.Devices {
		if !slices.Contains(names, name) {
			has := cmp.Or(strings.Join(names, ", "), "none")
			return schedule.Error{Kind: schedule.LoadFailed, Message: fmt.Sprintf("The model %s could not be loaded: the configuration "+
				"puts it on the device %s, which the engine %s doesn't find. It has: %s.", spec.Model.Key, name, e.Name, has)}
		}
	}
	return nil
}

// gpus returns the GPUs with memory of their own, as instances are counted against them. One that several engines name counts once.
func (s *Settings) gpus(found *foundDevices) []schedule.GPU {
	var all []schedule.GPU
	for _, of := range found.sorted() {
		for _, d := range of.gpus() {
			if slices.ContainsFunc(all, func(g schedule.GPU) bool { return g.Name == d.Name }) {
				continue
			}
			budget, ok := s.GPUMemory.ByName[d.Name]
			if !ok {
				budget = s.GPUMemory.Each
			}
			all = append(all, schedule.GPU{Name: d.Name, Total: d.Memory, Budget: budget.of(d.Memory), Context: d.Context})
		}
	}
	return all
}

// gpuRoom returns how many bytes of a model some GPUs have room for when nothing else is on them: the largest of them, if that is enough
// for the least that it needs, or else all; 0: none of it has to be on a GPU, or it can't be.
func (ds *Devices) gpuRoom(names []string, least int64) int64 {
	var largest, all int64
	for _, g := range ds.settings.Load().gpus(ds.found.Load()) {
		room := g.Total
		if g.Budget > 0 {
			room = min(room, g.Budget)
		}
		if room -= g.Context; slices.Contains(names, g.Name) && room > 0 {
			largest, all = max(largest, room), all+room
		}
	}
	if least <= 0 {
		return 0
	}
	if least <= largest {
		return largest
	}
	return all
}

// modelRoom returns how many bytes a model may take to run well: what all GPUs have together, or else the machine's memory; 0: unlimited.
func (ds *Devices) modelRoom() int64 {
	var names []string
	for _, g := range ds.settings.Load().gpus(ds.found.Load()) {
		names = append(names, g.Name)
	}
	if room := ds.gpuRoom(names, math.MaxInt64); room > 0 {
		return room
	}
	return ds.budget.Load()
}

// gpuMemory returns what is free of the GPUs. Drivers are asked that answer quickly, or else, if it is urgent, the engines.
func (ds *Devices) gpuMemory(ctx context.Context, isUrgent bool) []schedule.GPUMemory {
	if ds.found.Load() == nil {
		return nil
	}
	drivers := vram.Read(ctx)
	var all []schedule.GPUMemory
	for name, d := range ds.found.Load().sorted() {
		gpus := d.gpus()
		known := match(gpus, drivers)
		if e := ds.engines.byName[name]; len(known) < len(gpus) && isUrgent && e != nil {
			known = nil
			if build, err := e.process.Probe(ctx); err == nil {
				for _, now := range process.ListDevices(ctx, e.process, build) {
					if slices.ContainsFunc(gpus, func(known process.Device) bool { return known.Name == now.Name }) {
						known = append(known, schedule.GPUMemory{Device: now.Name, Total: now.Memory, Free: now.Free})
					}
				}
			}
		}
		all = append(all, known...)
	}
	return all
}

// match returns what drivers say of an engine's GPUs: the reports of GPUs of the same name and size, or nearly so, in their order. If
// there are more reports than GPUs, as where variables hide some from the engine, nobody knows which is which.
func match(gpus []process.Device, reports []vram.GPU) []schedule.GPUMemory {
	const tolerance = 0.03 // an engine may not count what the driver keeps for itself
	isOf := func(r *vram.GPU, d *process.Device) bool {
		return math.Abs(float64(r.Total-d.Memory)) <= tolerance*float64(d.Memory) && (r.Name == "" || strings.Contains(d.Title, r.Name))
	}
	var all []schedule.GPUMemory
	for i := range gpus {
		d := &gpus[i]
		same := slices.DeleteFunc(slices.Clone(reports), func(r vram.GPU) bool { return !isOf(&r, d) })
		before, number := 0, 0 // of the engine's GPUs that any of them may be of
		for k := range gpus {
			if slices.ContainsFunc(same, func(r vram.GPU) bool { return isOf(&r, &gpus[k]) }) {
				number++
				if k < i {
					before++
				}
			}
		}
		if len(same) == number && before < len(same) {
			all = append(all, schedule.GPUMemory{Device: d.Name, Total: same[before].Total, Free: same[before].Free})
		}
	}
	return all
}

// Device is a part of the machine that runs models.
type Device struct {
	Name    string
	IsGPU   bool // or another accelerator
	Unified bool // it shares the machine's memory
	Total   int64
	Free    int64 // 0: unknown
}

// List returns the processor, and the devices that the installed engines have found. Sizes are in bytes.
func (ds *Devices) List() []Device {
	total, free := machineMemory()
	all := []Device{{Name: schedule.CPU, Total: total, Free: free}}
	for _, found := range ds.found.Load().sorted() {
		for _, d := range found.Usable {
			if !d.IsCPU() && !slices.ContainsFunc(all, func(o Device) bool { return o.Name == d.Name }) {
				all = append(all, Device{Name: d.Name, IsGPU: true, Unified: d.Unified, Total: d.Memory, Free: d.Free})
			}
		}
	}
	o := ds.supervisor.Overview()
	for i := range all {
		if use := o.GPU(all[i].Name); use != nil && use.IsKnown {
			all[i].Free = use.Free
		}
	}
	return all
}

// of returns the budget in bytes, of so much memory; 0: unlimited.
func (b Budget) of(total int64) int64 {
	if b.Share <= 0 {
		return b.Bytes
	}
	return int64(b.Share * float64(total))
}

// Defaults for the memory that request bodies may take.
const (
	bodyShare   = 16        // all bodies get 1/bodyShare of the machine's memory
	leastBodies = 256 << 20 // bytes, on small machines
)

// MachineMemory returns the memory available to this process, in bytes: the machine's, or its control group's limit; 0: unknown.
func MachineMemory() int64 {
	total, _ := machineMemory()
	return total
}

// machineMemory is MachineMemory, and how much of it is free; 0: unknown, as with a limit.
func machineMemory() (total, free int64) {
	if m, err := mem.VirtualMemory(); err == nil {
		total, free = int64(min(m.Total, math.MaxInt64)), int64(min(m.Available, math.MaxInt64))
	}
	if limit, err := memlimit.FromCgroup(); err == nil && limit > 0 && (total == 0 || limit < uint64(total)) {
		total, free = int64(min(limit, math.MaxInt64)), 0
	}
	return total, free
}
