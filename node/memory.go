package node

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/shirou/gopsutil/v3/mem"
)

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

// bodyMemory returns the limit for all bodies together, in bytes.
func (s *Settings) bodyMemory() int64 {
	if s.BodyMemory > 0 {
		return s.BodyMemory
	}
	return max(MachineMemory()/bodyShare, leastBodies)
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
