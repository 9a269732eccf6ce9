package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// CPU is the name of the device that every machine has: its processor, with the machine's memory.
const CPU = "CPU"

// Allocation is memory that an engine has allocated in the buffers of one name.
type Allocation struct {
	Buffer string // its name, such as CUDA0, CPU_Mapped or CUDA_Host
	Bytes  int64
}

// mostAllocations bounds how many names of buffers are told apart: an engine has a few for each device.
const mostAllocations = 64

// allocated counts a buffer that an engine has reported. Readers may share the list, so it isn't changed in place.
func (a *Applied) allocated(sig Signal) {
	a.Buffers += sig.Bytes
	if sig.Weights {
		a.Weights += sig.Bytes
		if !strings.HasPrefix(sig.Text, CPU) && !strings.HasSuffix(sig.Text, "_Host") {
			a.WeightsOnGPUs += sig.Bytes
		}
	}
	i := slices.IndexFunc(a.Allocations, func(known Allocation) bool { return known.Buffer == sig.Text })
	if i < 0 && len(a.Allocations) == mostAllocations {
		i = mostAllocations - 1
	}
	a.Allocations = slices.Clone(a.Allocations)
	if i < 0 {
		a.Allocations = append(a.Allocations, Allocation{sig.Text, sig.Bytes})
		return
	}
	a.Allocations[i].Bytes += sig.Bytes
}

// DeviceMemory is what an instance takes of a device's memory, in bytes.
type DeviceMemory struct {
	Device string
	Bytes  int64
}

// devices returns what a load takes of each device, the machine's memory first.
func (l load) devices() []DeviceMemory {
	return append([]DeviceMemory{{CPU, l.memory}}, l.gpus...)
}

// IsShort reports whether less of the model is on GPUs than there was to be.
func (a *Applied) IsShort(on *Placement) bool {
	return len(on.Devices) > 0 && (a.Reduced || a.Layers < a.AllLayers || a.IsElsewhere(on))
}

// IsElsewhere reports whether nothing of the model is on the GPUs of its placement: the engine says so, or has reported buffers,
// and none there.
func (a *Applied) IsElsewhere(on *Placement) bool {
	isThere := func(device string) bool { return a.BytesOn(device) > 0 }
	return len(on.Devices) > 0 && (a.AllLayers > 0 && a.Layers == 0 || a.Buffers > 0 && !slices.ContainsFunc(on.Devices, isThere))
}

// String describes a plan, such as "CUDA0" or "82 % on CUDA0, the rest on the processor".
func (p Placement) String() string {
	where := strings.Join(p.Devices, ", ")
	switch {
	case p.Processor:
		return "the processor"
	case p.IsPartial():
		return fmt.Sprintf("%.0f %% on %s, the rest on the processor", 100*p.Share, where)
	default:
		return where
	}
}

// Describe is like String, of a model that is loaded: a process reports how many layers it has where.
func (p *Placement) Describe(a *Applied) string {
	where := strings.Join(p.Devices, ", ")
	switch {
	case p.Processor, a.IsElsewhere(p):
		return "the processor"
	case !p.IsPartial() && !a.IsShort(p):
		return where
	case a.AllLayers == 0:
		return where + " and the processor"
	}
	text := fmt.Sprintf("%d of %d layers on %s", a.Layers, a.AllLayers, where)
	if a.Weights > 0 {
		text += fmt.Sprintf(" (%d %% of the weights)", 100*a.WeightsOnGPUs/a.Weights)
	}
	return text
}

// GPU is a device with memory of its own, as instances are counted against it.
type GPU struct {
	Name    string // the engine's name for it, such as CUDA0
	Total   int64  // bytes
	Budget  int64  // bytes that all instances together may take; 0: Total
	Context int64  // bytes that each process takes of it in addition to its buffers
}

// GPUMemory is what a GPU's driver, or the engine, reports about its memory.
type GPUMemory struct {
	Device      string
	Total, Free int64 // bytes
}

const (
	// sampleAge is how old the report about the GPUs may be when a load is decided for which there isn't clearly room.
	sampleAge = time.Second
	// resampleAfter is the interval between reports while a model is on a GPU: other programs may need its memory.
	resampleAfter = 10 * time.Second
	// yieldAfter is how long a model must be idle before it makes room for another program on a GPU.
	yieldAfter = 30 * time.Second
	// recoveryTime is how long a driver may take to free the memory of a process that has ended.
	recoveryTime = 5 * time.Second
	// growth is what a process may take of a GPU beyond what it reports, in bytes. It isn't taken for another program's.
	growth = 256 << 20
	// spare is what is left free of a GPU for other programs to begin with, in bytes, if the budget leaves as much.
	spare = 512 << 20
	// leastShare is the part of a model that has to fit on a GPU for a split between it and the processor to be worth it.
	leastShare = 1. / 16
)

// Placement is where a launch computes a model.
type Placement struct {
	// Devices are the GPUs, by the engine's names. If there are none, either the engine has no GPU with memory of its own, or the
	// model is on the processor although it has.
	Devices []string
	// Whole says that all of the model is to be on them. Otherwise as much as they have room for is.
	Whole bool
	// Processor says that the model is on the processor, although the engine has a GPU.
	Processor bool
	// Share is the part of what could be on GPUs that is planned to be.
	Share float64
	// Margins are the bytes of each device that the engine has to leave free.
	Margins []int64
}

// IsPartial reports whether a part of the model, or all of it, is planned to be on the processor although there are GPUs.
func (p *Placement) IsPartial() bool { return p.Processor || len(p.Devices) > 0 && !p.Whole }

func (l *Limits) gpu(name string) *GPU {
	if i := slices.IndexFunc(l.GPUs, func(g GPU) bool { return g.Name == name }); i >= 0 {
		return &l.GPUs[i]
	}
	return nil
}

// limitOf returns how many bytes of a GPU instances may take together now. What other programs hold is theirs, and of what the
// budget leaves they find a little free: so they can begin to grow, by which it is seen that they need more.
func (st *State) limitOf(g *GPU) int64 {
	held := st.Held[g.Name]
	if g.Budget <= 0 || g.Budget >= g.Total {
		return max(0, g.Total-held)
	}
	return max(0, min(g.Budget, g.Total-held-min(g.Total-g.Budget, spare)))
}

// GPUsOf returns the GPUs that a Spec may be on, in the order of the limits. It is empty if the engine has none, or if where the model is
// isn't ours to decide.
func (st *State) GPUsOf(spec *Spec) []*GPU {
	var all []*GPU
	for i := range st.Limits.GPUs {
		if g := &st.Limits.GPUs[i]; slices.Contains(spec.Devices, g.Name) && !slices.Contains(st.Lost, g.Name) {
			all = append(all, g)
		}
	}
	return all
}

func bytesOf(device string, all []DeviceMemory) int64 {
	for _, d := range all {
		if d.Device == device {
			return d.Bytes
		}
	}
	return 0
}

// added returns the sum of two lists. The devices of b are subtracted if sign is -1. Neither list is changed.
func added(a, b []DeviceMemory, sign int64) []DeviceMemory {
	if len(b) == 0 {
		return a
	}
	a = slices.Clone(a)
	for _, d := range b {
		if i := slices.IndexFunc(a, func(o DeviceMemory) bool { return o.Device == d.Device }); i >= 0 {
			a[i].Bytes += sign * d.Bytes
		} else {
			a = append(a, DeviceMemory{d.Device, sign * d.Bytes})
		}
	}
	return a
}

// sample asks for a report about the GPUs unless one is on its way.
func (s *stepper) sample(isUrgent bool) {
	if !s.st.Sampling {
		s.st.Sampling = true
		s.do(Sample{isUrgent})
	}
}

// isSampled reports whether the last report is new enough to decide any load.
func (st *State) isSampled(now time.Time) bool {
	return !st.SampledAt.IsZero() && now.Sub(st.SampledAt) < sampleAge
}

// samplesAt returns when the next report is due; zero: nothing needs it, or it is on its way.
func (st *State) samplesAt() time.Time {
	switch {
	case st.Sampling:
		return time.Time{}
	case st.recovering:
		return st.SampledAt.Add(sampleAge)
	case slices.ContainsFunc(st.Instances, func(in *Instance) bool { return len(in.OnGPUs) > 0 }):
		return st.SampledAt.Add(resampleAfter)
	default:
		return time.Time{}
	}
}

// yielding returns the least recently used of the idle models on a GPU whose memory other programs need; nil: there is none.
func (st *State) yielding() (oldest *Instance) {
	if len(st.Held) == 0 {
		return nil
	}
	taken := st.taken(stays)
	isShort := func(d DeviceMemory) bool { return st.Held[d.Device] > 0 && st.isOver(d.Device, taken) }
	for _, in := range st.Instances {
		if in.isIdle() && in.isEvictable() && !in.wanted && slices.ContainsFunc(in.OnGPUs, isShort) &&
			(oldest == nil || in.LastUsed.Before(oldest.LastUsed)) {
			oldest = in
		}
	}
	return oldest
}

// tryWhole loads an instance again whose engine doesn't find the room for all of the model that the estimate promised, if other
// models on its GPUs can leave first. The second attempt stays as it is.
func (Signalled) tryWhole(s *stepper, in *Instance) {
	if !in.On.Whole || in.Spared || !in.Status.IsLoading() || in.OutOfMemory {
		return
	}
	isBeside := func(o *Instance) bool {
		return o != in && o.isIdle() && o.isEvictable() && slices.ContainsFunc(o.OnGPUs,
			func(d DeviceMemory) bool { return slices.Contains(in.On.Devices, d.Device) })
	}
	if slices.ContainsFunc(s.st.Instances, isBeside) {
		in.OutOfMemory, in.Retrying = true, true // when it has ended, the others leave
		s.do(Stop{in.Gen, ForWhole})
	}
}

// BytesOn returns what a process has reported of its buffers on a GPU.
func (a *Applied) BytesOn(device string) (bytes int64) {
	for _, one := range a.Allocations {
		if rest, ok := strings.CutPrefix(one.Buffer, device); ok && (rest == "" || rest[0] == '_') {
			bytes += one.Bytes
		}
	}
	return bytes
}

// Sampled reports the memory of the GPUs. It ends a Sample. One that isn't named is as before. What isn't counted for an instance
// is held by other programs. While an instance is loaded or stopped, that isn't known exactly: it isn't lowered then.
type Sampled struct{ GPUs []GPUMemory }

func (ev Sampled) apply(s *stepper) {
	st := s.st
	st.Sampling, st.SampledAt = false, s.now
	held, free := map[string]int64{}, map[string]int64{}
	maps.Copy(held, st.Held)
	for _, sample := range ev.GPUs {
		g := st.Limits.gpu(sample.Device)
		if g == nil {
			continue
		}
		ours, inFlux := int64(0), false
		for _, in := range st.Instances {
			bytes := bytesOf(g.Name, in.OnGPUs)
			if bytes == 0 {
				continue
			}
			ours += bytes + min(growth, g.Context)
			inFlux = inFlux || in.Status.IsLoading() || in.Status == Stopping
		}
		others := max(0, g.Total-sample.Free-ours)
		if inFlux {
			others = max(others, held[g.Name])
		}
		held[g.Name], free[g.Name] = others, sample.Free
	}
	st.Held = held
	if len(ev.GPUs) > 0 {
		st.Free = free
	}
}
