//go:build unix

package supervisor

import (
	"os"
	"syscall"
)

// group is an engine's process group: the engine and its children.
type group int

// adopt returns the group of a process that was started with ownGroup.
func adopt(p *os.Process) (group, error) { return groupOf(p.Pid), nil }

func groupOf(pid int) group { return group(pid) }

// looksEnded reports whether a process has exited, according to the process table.
func looksEnded(p *os.Process) bool { return p.Signal(syscall.Signal(0)) != nil || isZombie(p.Pid) }

func (g group) terminate() error { return syscall.Kill(-int(g), syscall.SIGTERM) }

// kill kills what is left of the group.
func (g group) kill() { _ = syscall.Kill(-int(g), syscall.SIGKILL) }
