//go:build unix

package supervisor

import (
	"os"
	"syscall"
)

// group is an engine's process group: itself and whatever it has forked.
type group int

// adopt takes a process that ownGroup has given a group of its own.
func adopt(p *os.Process) (group, error) { return groupOf(p.Pid), nil }

func groupOf(pid int) group { return group(pid) }

// looksEnded tells whether a process has ended, from what the system lists.
func looksEnded(p *os.Process) bool { return p.Signal(syscall.Signal(0)) != nil || isZombie(p.Pid) }

func (g group) terminate() error { return syscall.Kill(-int(g), syscall.SIGTERM) }

// kill ends what is left of the group. That nothing is left is no error.
func (g group) kill() { _ = syscall.Kill(-int(g), syscall.SIGKILL) }
