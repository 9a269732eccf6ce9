//go:build unix && !linux

package child

import "syscall"

// OwnGroup puts a child in its own process group, so that Ctrl-C in the terminal doesn't reach it. If this process is killed,
// the child's standard input closes.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
