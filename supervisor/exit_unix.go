//go:build unix

package supervisor

import (
	"errors"
	"syscall"
)

// wasKilled tells whether a process was ended by a signal that it can't see, as the system does it to who takes too much
// memory.
func wasKilled(err error) bool {
	var exit exitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
