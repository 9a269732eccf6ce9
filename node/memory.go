package node

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

// deviceTimeout bounds the time that an engine may take to list its devices.
const deviceTimeout = 20 * time.Second

// bytes returns the budget in bytes; 0: unlimited. A share is taken of the memory available to this process plus that of
// devices with their own memory.
func (b Budget) bytes(devices []supervisor.Device) int64 {
	if b.Share <= 0 {
		return b.Bytes
	}
	total := MachineMemory()
	if total == 0 {
		return 0
	}
	for _, d := range devices {
		if !d.Unified {
			total += d.Memory
		}
	}
	return int64(b.Share * float64(total))
}

// MachineMemory returns the memory available to this process, in bytes: the machine's, or the limit of its control group; 0
// if unknown.
func MachineMemory() int64 {
	var total uint64
	if m, err := mem.VirtualMemory(); err == nil {
		total = m.Total
	}
	if limit, err := memlimit.FromCgroup(); err == nil && limit > 0 && (total == 0 || limit < total) {
		total = limit
	}
	return int64(total)
}

// lookAtDevices asks the installed engines which devices they can use. A device that several engines name counts once.
func (n *Node) lookAtDevices() {
	ctx, cancel := context.WithTimeout(n.ctx, deviceTimeout)
	defer cancel()
	var devices []supervisor.Device
	isKnown := false
	for _, name := range slices.Sorted(maps.Keys(n.engines)) {
		build, err := n.engines[name].process.Probe(ctx)
		if err != nil {
			continue
		}
		isKnown = true
		for _, d := range build.Devices {
			if !slices.ContainsFunc(devices, func(o supervisor.Device) bool { return o.Name == d.Name }) {
				devices = append(devices, d)
			}
		}
	}
	if isKnown {
		n.devices.Store(&devices)
	}
}

// budgetOf returns a budget in bytes, for the devices that were found last. Forgetting them while settings change would
// evict the models loaded on them.
func (n *Node) budgetOf(b Budget) int64 {
	if devices := n.devices.Load(); devices != nil {
		return b.bytes(*devices)
	}
	return b.bytes(nil)
}
