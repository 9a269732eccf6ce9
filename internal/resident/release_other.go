//go:build !linux

package resident

import "runtime/debug"

// Release returns garbage of the program's start to the system. There is no error.
func Release() error {
	debug.FreeOSMemory()
	return nil
}
