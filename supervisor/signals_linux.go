package supervisor

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// endSignals are those that ask a program to end, as a set of bits.
const endSignals = 1<<(unix.SIGTERM-1) | 1<<(unix.SIGINT-1) | 1<<(unix.SIGHUP-1)

// blockSignals keeps the signals that ask a program to end from the current thread, and so from the engine that the thread
// starts: a signal mask survives exec. Whoever signals us and our engines at once, as systemd does with a control group, then
// doesn't take the engines from the requests that may still finish. Ignoring the signals wouldn't do: llama-server installs
// handlers of its own for SIGTERM and SIGINT, in which it closes its listener. SIGHUP would kill it.
func blockSignals() error {
	set := unix.Sigset_t{}
	set.Val[0] = endSignals
	return unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}

// isAskedToEnd tells whether a process has been sent a signal that blockSignals keeps from it. Such a signal stays pending.
func isAskedToEnd(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false // it has ended
	}
	_, pending, _ := strings.Cut(string(status), "\nShdPnd:")
	pending, _, _ = strings.Cut(pending, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(pending), 16, 64)
	return err == nil && set&endSignals != 0
}
