package child

import "syscall"

// OwnGroup puts a child in its own process group, so that Ctrl-C in the terminal doesn't reach it, and has the kernel kill it
// when this process ends in any way. The kernel does so when the thread that started the child ends: StartOnThread keeps that
// thread alive.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
