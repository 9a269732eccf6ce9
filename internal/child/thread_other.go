//go:build !linux

package child

// isMainThread matters only where threads are sandboxed.
func isMainThread() bool { return false }
