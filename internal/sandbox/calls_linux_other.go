//go:build linux && !amd64

package sandbox

import "golang.org/x/sys/unix"

// oldRefusals are of calls that newer architectures don't have.
var oldRefusals []refusal

// opening are the calls that open files, with the argument that has their flags.
var opening = map[uint32]uint32{unix.SYS_OPENAT: 2}
