//go:build !linux

package supervisor

// blockSignals does nothing: only on Linux are engines signalled together with the server.
func blockSignals() error { return nil }

// isAskedToEnd returns false: signals aren't blocked here, so they reach the engine.
func isAskedToEnd(int) bool { return false }
