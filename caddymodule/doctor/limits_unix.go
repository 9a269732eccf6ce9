//go:build unix

package doctor

import "golang.org/x/sys/unix"

// limits returns the most files that a process may open, and the most memory that it may take; 0: unlimited. The server
// raises its own limit of files to the highest allowed.
func limits() (files, memory uint64) {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && l.Max < unlimited {
		files = l.Max
	}
	if unix.Getrlimit(unix.RLIMIT_AS, &l) == nil && l.Cur < unlimited {
		memory = l.Cur
	}
	return files, memory
}

// unlimited is less than what any system calls infinite, and more than any limit.
const unlimited = 1 << 60
