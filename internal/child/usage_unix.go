//go:build unix

package child

import (
	"context"
	"syscall"

	gopsutil "github.com/shirou/gopsutil/v3/process"
)

// members returns the ids of the processes in the group.
func (g Group) members(ctx context.Context, _ int) []int32 {
	all, err := gopsutil.PidsWithContext(ctx)
	if err != nil {
		return nil
	}
	var members []int32
	for _, pid := range all {
		if id, err := syscall.Getpgid(int(pid)); err == nil && Group(id) == g {
			members = append(members, pid)
		}
	}
	return members
}
