//go:build unix && !linux

package supervisor

import "os"

// hasEnded reports whether a process has exited, even if it hasn't been waited for.
func hasEnded(p *os.Process) bool { return looksEnded(p) }
