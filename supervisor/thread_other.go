//go:build !linux

package supervisor

// isMainThread matters only where threads are sandboxed.
func isMainThread() bool { return false }
