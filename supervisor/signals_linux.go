package supervisor

import (
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
