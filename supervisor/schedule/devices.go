package schedule

import (
	"fmt"
	"slices"
	"strings"
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
