package child

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

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
