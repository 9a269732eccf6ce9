//go:build linux && !amd64

package sandbox

// has32Bits is false: a 64-bit program can't make a system call of a 32-bit one.
func has32Bits() bool { return false }

func call32Bits() error { return nil }
