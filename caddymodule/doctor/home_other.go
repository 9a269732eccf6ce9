//go:build !linux

package doctor

// networkFileSystem isn't known on this system.
func networkFileSystem(string) string { return "" }
