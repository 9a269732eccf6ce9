package node

import (
	"maps"
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

// Devices returns the processor, and the devices that the installed engines have found. Sizes are in bytes.
func (ds *Devices) List() []Device {
	cpu := Device{Name: schedule.CPU, Total: MachineMemory()}
	if m, err := mem.VirtualMemory(); err == nil && !isLimited() {
		cpu.Free = int64(min(m.Available, math.MaxInt64))
	}
	all := []Device{cpu}
	if found := ds.found.Load(); found != nil {
		for _, engine := range slices.Sorted(maps.Keys(*found)) {
			for _, d := range (*found)[engine].Usable {
				if !d.IsCPU() && !slices.ContainsFunc(all, func(o Device) bool { return o.Name == d.Name }) {
					all = append(all, Device{Name: d.Name, IsGPU: true, Unified: d.Unified, Total: d.Memory, Free: d.Free})
				}
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

// isLimited reports whether a control group limits the memory of this process: how much of it is free isn't known then.
func isLimited() bool {
	limit, err := memlimit.FromCgroup()
	m, failed := mem.VirtualMemory()
	return err == nil && limit > 0 && (failed != nil || limit < m.Total)
}
