//go:build unix

package venv

import "golang.org/x/sys/unix"

// flush flushes what was written to disk, since a rename that installs it must not get there first. That is faster than flushing
// ten thousand files one by one.
func flush() { unix.Sync() }
