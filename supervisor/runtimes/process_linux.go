package runtimes

import (
	"os/exec"
	"syscall"
)

// endWithUs makes a command, and what it starts, end with its context and with this process.
func endWithUs(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
