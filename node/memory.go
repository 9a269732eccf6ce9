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

// deviceTimeout bounds how long an engine may take to tell its devices.
const deviceTimeout = 20 * time.Second

// bytes is the budget in bytes; 0: no bound. Of the machine's memory the part counts that this process may take, and the
// memory of those devices that have their own.
func (b Budget) bytes(devices []supervisor.Device) int64 {
	if b.Share <= 0 {
		return b.Bytes
	}
	total := machineMemory()
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

// machineMemory is how much memory this process may take, in bytes: the machine's, or what its control group is limited to;
// 0 where it can't be told.
func machineMemory() int64 {
	var total uint64
	if m, err := mem.VirtualMemory(); err == nil {
		total = m.Total
	}
	if limit, err := memlimit.FromCgroup(); err == nil && limit > 0 && (total == 0 || limit < total) {
		total = limit
	}
	return int64(total)
}

// lookAtDevices asks the engines which devices they can use; none where no engine is installed yet. A device that several
// name counts once.
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

// budgetOf is a budget in bytes, on the devices that were found the last time. To forget them for a moment, as when settings
// change, would evict what is loaded on them.
func (n *Node) budgetOf(b Budget) int64 {
	if devices := n.devices.Load(); devices != nil {
		return b.bytes(*devices)
	}
	return b.bytes(nil)
}
