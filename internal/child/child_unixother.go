//go:build unix && !linux

package child

import (
	"os"
	"syscall"
)

// OwnGroup puts a child in its own process group, so that Ctrl-C in the terminal doesn't reach it. If this process is killed,
// the child's standard input closes.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// HasEnded reports whether a process has exited, even if it hasn't been waited for.
func HasEnded(p *os.Process) bool { return looksEnded(p) }
