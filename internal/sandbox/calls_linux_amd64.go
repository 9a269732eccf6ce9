package sandbox

import "golang.org/x/sys/unix"

// oldRefusals are of calls that newer architectures don't have.
var oldRefusals = []refusal{
	{unix.EPERM, []uint32{
		unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT,
	}},
}

// opening are the calls that open files, with the argument that has their flags.
var opening = map[uint32]uint32{unix.SYS_OPEN: 1, unix.SYS_OPENAT: 2}
