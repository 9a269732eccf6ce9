//go:build !linux

package resident

import "runtime/debug"

// Release gives memory back that the start of the program has used. There is no error.
func Release() error {
	debug.FreeOSMemory()
	return nil
}
