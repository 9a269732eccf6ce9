//go:build unix && !linux

package supervisor

import "os"

// hasEnded tells whether a process has ended, also while nobody has waited for it yet.
func hasEnded(p *os.Process) bool { return looksEnded(p) }
