//go:build !linux

package supervisor

// hideFiles does nothing where threads have no mask of their own: an engine's files are in folders that only this user can enter.
func hideFiles() {}
