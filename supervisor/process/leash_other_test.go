//go:build !linux

package process

import "syscall"

// withoutLeash lets a process outlive who started it.
func withoutLeash(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }
