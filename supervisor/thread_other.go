//go:build !linux

package supervisor

// isMainThread matters where threads are confined.
func isMainThread() bool { return false }
