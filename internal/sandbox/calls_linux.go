package sandbox

import "golang.org/x/sys/unix"

// newestCall is the newest system call that was looked at for the lists below. From 424 on, numbers are the same on all architectures. A
// program gets the same answer for those that are newer as from a kernel that doesn't have them: among them are setxattrat and
// file_setattr.
const newestCall = unix.SYS_MSEAL

// refusal is what programs get for some system calls, on all architectures.
type refusal struct {
	errno unix.Errno
	calls []uint32
}

// refusals are of calls for which Landlock has no right, or none in older kernels, and that reach beyond the program.
var refusals = []refusal{
	{unix.EPERM, []uint32{ // attributes of files
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2,
		unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
		unix.SYS_UTIMENSAT,
	}},
	{unix.EOPNOTSUPP, []uint32{ // as on a file system without extended attributes
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR,
		unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FGETXATTR,
		unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_FLISTXATTR,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	}},
	{unix.EPERM, []uint32{ // files by other ways than paths, and what others do with them
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
		unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	}},
	{unix.EPERM, []uint32{ // the tree of files
		unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT,
		unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_SETNS,
	}},
	{unix.EPERM, []uint32{ // other processes, and the kernel's insight into them
		unix.SYS_PTRACE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_SYSLOG,
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	}},
	{unix.EPERM, []uint32{ // the system: an engine may run as root
		unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME,
		unix.SYS_ADJTIMEX, unix.SYS_VHANGUP,
	}},
	{unix.ENOSYS, []uint32{ // memory and messages that are shared by number with any process of the user, as of a kernel without them
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
		unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK, unix.SYS_MQ_NOTIFY,
	}},
	{unix.ENOSYS, []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // it performs other system calls unseen by the filter
		unix.SYS_CLONE3, // its flags are in memory; libraries call clone then
	}},
}

// fcntlCommands are those that are allowed. Not among them are leases, which hold up whoever opens the file, and owners, who get signals.
var fcntlCommands = []uint32{
	unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_DUPFD_QUERY, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
	unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW,
	unix.F_GETPIPE_SZ, unix.F_SETPIPE_SZ, unix.F_ADD_SEALS, unix.F_GET_SEALS,
}

// ioctlKinds are the kinds of commands (bits 8 to 15) that are refused: those of file systems, with which a file that may only be read can
// be made immutable, a folder copied, and a file system frozen; and those of sockets, with which root configures networks by any socket.
// Landlock has a right for those of devices alone. The drivers of GPUs use others: F, d, K, N, G and 0 among them.
var ioctlKinds = []uint32{
	'f', 'v', // FS_IOC_SETFLAGS, FS_IOC_SETVERSION, ext4, encryption
	'X',        // FS_IOC_FSSETXATTR, FIFREEZE, FITRIM, XFS
	'r',        // FAT
	0x94, 0xf5, // Btrfs, and FICLONE; F2FS
	0xbc, 0xcf, // Bcachefs, CIFS
	0x89, // sockets
}

// ofProcess are the calls whose first argument is the id of a process or a thread that they read or change.
var ofProcess = []uint32{
	unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
	unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_OPEN,
}

// ofKind are the calls whose first argument says what the second is the id of, with its value for a process or a thread.
var ofKind = map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_PROCESS, unix.SYS_IOPRIO_SET: 1} // IOPRIO_WHO_PROCESS

// ofSignals are the calls that send signals to a process or a thread, the first argument.
var ofSignals = []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO}
