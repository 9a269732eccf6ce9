//go:build unix && !linux

package child

import "os"

// HasEnded reports whether a process has exited, even if it hasn't been waited for.
func HasEnded(p *os.Process) bool { return looksEnded(p) }
