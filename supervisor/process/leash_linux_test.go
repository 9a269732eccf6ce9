package process

import "syscall"

// withoutLeash lets a process outlive who started it.
func withoutLeash(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	a.Pdeathsig = 0
	return a
}
