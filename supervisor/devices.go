package supervisor

import (
	"slices"
	"strings"
)

// CPU is the name of the device that every machine has: its processor, with the machine's memory.
const CPU = "CPU"

// Allocation is memory that an engine has allocated in the buffers of one name.
type Allocation struct {
	Buffer string // its name, such as CUDA0, CPU_Mapped or CUDA_Host
	Worker string // the address of the worker that has it; empty: it is on this machine
	Bytes  int64
}

// mostAllocations bounds how many names of buffers are told apart: an engine has a few for each device.
const mostAllocations = 64

// allocated counts a buffer that an engine has reported. Readers may share the list, so it isn't changed in place.
func (a *Applied) allocated(sig Signal) {
	if sig.Worker == "" {
		a.Buffers += sig.Bytes
	}
	i := slices.IndexFunc(a.Allocations, func(known Allocation) bool { return known.Buffer == sig.Text && known.Worker == sig.Worker })
	if i < 0 && len(a.Allocations) == mostAllocations {
		i = mostAllocations - 1
	}
	a.Allocations = slices.Clone(a.Allocations)
	if i < 0 {
		a.Allocations = append(a.Allocations, Allocation{sig.Text, sig.Worker, sig.Bytes})
		return
	}
	a.Allocations[i].Bytes += sig.Bytes
}

// DeviceMemory is what an instance takes of a device's memory, in bytes.
type DeviceMemory struct {
	Device string
	Bytes  int64
}

// Workers returns what the instance takes of the memory of its workers, in the order of its Spec; while that isn't known, without figures.
func (i Info) Workers() []DeviceMemory {
	var all []DeviceMemory
	for n, address := range i.Spec.RPC {
		taken := DeviceMemory{Device: address}
		for _, a := range i.applied.Allocations {
			if a.Worker != "" && (a.Worker == address || n < len(i.workers) && a.Worker == i.workers[n]) {
				taken.Bytes += a.Bytes
			}
		}
		all = append(all, taken)
	}
	return all
}

// Devices returns how the Memory of the instance is spread over the devices of this machine, the CPU first; nil: it isn't known, or not yet. What the engine
// didn't report by device is counted for the CPU.
func (i Info) Devices() []DeviceMemory {
	hasOthers := slices.ContainsFunc(i.Build.Devices, func(d Device) bool { return !d.IsCPU() })
	if i.Build.Devices == nil || hasOthers && (i.applied.Buffers == 0 || i.LoadedAt.IsZero()) {
		return nil
	}
	all := []DeviceMemory{{Device: CPU, Bytes: i.Memory}}
	for _, a := range i.applied.Allocations {
		name := deviceOf(a.Buffer, i.Build.Devices)
		if name == CPU || a.Bytes == 0 || a.Worker != "" {
			continue
		}
		at := slices.IndexFunc(all, func(d DeviceMemory) bool { return d.Device == name })
		if at < 0 {
			at = len(all)
			all = append(all, DeviceMemory{Device: name})
		}
		all[at].Bytes += a.Bytes
		all[0].Bytes -= a.Bytes
	}
	all[0].Bytes = max(0, all[0].Bytes)
	return all
}

// deviceOf returns the device that has a buffer: the one whose name its name is or begins with, as CUDA0_Split does. Other buffers, such as
// CUDA_Host, are in the machine's memory.
func deviceOf(buffer string, devices []Device) string {
	for _, d := range devices {
		if rest, ok := strings.CutPrefix(buffer, d.Name); ok && (rest == "" || rest[0] == '_') && !d.IsCPU() {
			return d.Name
		}
	}
	return CPU
}

// IsCPU reports whether the device is the processor itself, under a name that a library gives it.
func (d Device) IsCPU() bool {
	return strings.HasPrefix(d.Name, CPU) || strings.HasPrefix(d.Name, "BLAS")
}
