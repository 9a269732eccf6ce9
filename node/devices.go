package node

import (
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/lmcaddy/lmcaddy/supervisor"
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
func (n *Node) Devices() []Device {
	cpu := Device{Name: supervisor.CPU, Total: MachineMemory()}
	if m, err := mem.VirtualMemory(); err == nil && !isLimited() {
		cpu.Free = int64(min(m.Available, math.MaxInt64))
	}
	all := []Device{cpu}
	if found := n.devices.Load(); found != nil {
		for _, d := range *found {
			if !d.IsCPU() {
				all = append(all, Device{Name: d.Name, IsGPU: true, Unified: d.Unified, Total: d.Memory})
			}
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
