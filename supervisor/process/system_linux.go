package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// endSignals is the set of signals that ask a program to terminate.
const endSignals = 1<<(unix.SIGTERM-1) | 1<<(unix.SIGINT-1) | 1<<(unix.SIGHUP-1)

// blockSignals blocks endSignals in the current thread, and so in the engine that the thread starts: the signal mask survives
// exec. If the server and its engines are signalled together, as systemd does with a control group, the engines then stay up
// for the requests that may still finish. Ignoring the signals isn't enough: llama-server installs its own handlers for
// SIGTERM and SIGINT, which close its listener. SIGHUP would kill it.
func blockSignals() error {
	set := unix.Sigset_t{}
	set.Val[0] = endSignals
	return unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}

// isAskedToEnd reports whether a process has been sent one of endSignals. Since they are blocked, the signal stays pending.
func isAskedToEnd(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false // it has exited
	}
	_, pending, _ := strings.Cut(string(status), "\nShdPnd:")
	pending, _, _ = strings.Cut(pending, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(pending), 16, 64)
	return err == nil && set&endSignals != 0
}

// hideFiles gives the files that an engine makes to its user alone. It is called in the thread that starts the engine, which inherits
// the mask; that of the server's other threads stays as it is. Where the system refuses that, the files are still in a folder that only
// this user can enter.
func hideFiles() {
	if unix.Unshare(unix.CLONE_FS) == nil {
		unix.Umask(0o077)
	}
}

// oomKills returns how many processes the system has killed since it started because memory ran out, also that of a control group.
func oomKills() int64 {
	all, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(all, []byte("\noom_kill "))
	figure, _, _ := bytes.Cut(rest, []byte("\n"))
	count, err := strconv.ParseInt(string(figure), 10, 64)
	if err != nil {
		return 0
	}
	return count
}
