//go:build !linux

package supervisor

// blockSignals is for Linux: elsewhere only the process that is to end is signalled.
func blockSignals() error { return nil }

// isAskedToEnd is for Linux: elsewhere a signal reaches the engine.
func isAskedToEnd(int) bool { return false }
