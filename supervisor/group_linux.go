package supervisor

import "syscall"

// ownGroup puts a child in a group of its own, which Ctrl-C in our terminal doesn't reach, and has the kernel kill it when
// we end, however we end. The kernel takes the end of the starting thread for ours: startOnThread keeps it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
