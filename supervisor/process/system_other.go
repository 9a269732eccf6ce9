//go:build !linux

package process

// blockSignals does nothing: only on Linux are engines signalled together with the server.
func blockSignals() error { return nil }

// isAskedToEnd returns false: signals aren't blocked here, so they reach the engine.
func isAskedToEnd(int) bool { return false }

// hideFiles does nothing where threads have no mask of their own: an engine's files are in folders that only this user can enter.
func hideFiles() {}

// oomKills returns 0: the system doesn't tell.
func oomKills() int64 { return 0 }
