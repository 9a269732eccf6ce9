package child

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// OwnGroup puts a child in its own process group, so that Ctrl-C in the terminal doesn't reach it, and has the kernel kill it when this
// process ends in any way. The kernel does so when the thread that started the child ends: StartOnThread keeps that thread alive.
func OwnGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// HasEnded reports whether a process has exited, even if it hasn't been waited for.
func HasEnded(p *os.Process) bool {
	ended := false
	err := p.WithHandle(func(handle uintptr) {
		fds := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}} //nolint:gosec // file descriptors fit
		n, err := unix.Poll(fds, 0)
		ended = err == nil && n > 0
	})
	if errors.Is(err, os.ErrNoHandle) { // an older kernel
		return looksEnded(p)
	}
	return ended || err != nil
}

func isMainThread() bool { return unix.Gettid() == os.Getpid() }

// waited returns for how long the main thread of a process has been ready to run and had no processor; 0 if the kernel doesn't count that.
func waited(pid int) time.Duration {
	counts, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0
	}
	var ran, waited int64 // in nanoseconds
	if _, err := fmt.Sscan(string(counts), &ran, &waited); err != nil {
		return 0
	}
	return time.Duration(waited)
}
