//go:build unix

package supervisor

import (
	"errors"
	"syscall"
)

// wasKilled reports whether a process was killed by SIGKILL, as the system does with one that takes too much memory.
func wasKilled(err error) bool {
	var exit exitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
