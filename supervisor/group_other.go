//go:build unix && !linux

package supervisor

import "syscall"

// ownGroup puts a child in its own process group, so that Ctrl-C in the terminal doesn't reach it. If this process is killed,
// the engine exits because its standard input closes.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
