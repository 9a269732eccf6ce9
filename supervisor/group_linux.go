package supervisor

import "syscall"

// ownGroup puts a child in its own process group, so that Ctrl-C in the terminal doesn't reach it, and has the kernel kill it
// when this process ends in any way. The kernel does so when the thread that started the child ends: startOnThread keeps that
// thread alive.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
