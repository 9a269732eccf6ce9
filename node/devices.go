package node

import (
	"math"
	"slices"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

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
