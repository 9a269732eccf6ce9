//go:build unix

package child

import (
	"context"
	"os"
	"syscall"

	gopsutil "github.com/shirou/gopsutil/v3/process"
)

// Group is the process group of a child and of its descendants that haven't left it.
type Group int

// Adopt returns the group of a process that was started with OwnGroup.
func Adopt(p *os.Process) (Group, error) { return Group(p.Pid), nil }

func groupOf(pid int) Group {
	id, err := syscall.Getpgid(pid)
	if err != nil || id == syscall.Getpgrp() {
		return Group(pid)
	}
	return Group(id)
}

// lookUp returns what can be asked about a process, which need not exist. gopsutil.NewProcess would leave a file descriptor open
// until the next garbage collection.
func lookUp(pid int32) (*gopsutil.Process, error) { return &gopsutil.Process{Pid: pid}, nil }

// looksEnded reports whether a process has exited, according to the process table.
func looksEnded(p *os.Process) bool { return p.Signal(syscall.Signal(0)) != nil || isZombie(p.Pid) }

// Terminate sends SIGTERM to the group.
func (g Group) Terminate() error { return syscall.Kill(-int(g), syscall.SIGTERM) }

// Kill kills what is left of the group.
func (g Group) Kill() { _ = syscall.Kill(-int(g), syscall.SIGKILL) }

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
