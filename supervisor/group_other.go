//go:build unix && !linux

package supervisor

import "syscall"

// ownGroup puts a child in a group of its own, which Ctrl-C in our terminal doesn't reach. There is no help from the kernel
// when we are killed: the engine ends when its standard input, which we hold, closes.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
