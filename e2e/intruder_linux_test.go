package e2e

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// calls are system calls that Landlock doesn't restrict, on a file of the user and on the server's process; and the same on the engine's own,
// which begin with "own". All of them leave things as they are.
func (in *intrusion) calls(server int) map[string]func() error {
	on := func(do func(fd int) error) func() error {
		return func() error {
			file, err := os.Open(in.Call)
			if err != nil {
				return err
			}
			defer file.Close()
			return do(int(file.Fd()))
		}
	}
	calls := map[string]func() error{
		"chmod":     func() error { return unix.Chmod(in.Call, 0o644) },
		"fchmod":    on(func(fd int) error { return unix.Fchmod(fd, 0o644) }),
		"fchmodat":  func() error { return unix.Fchmodat(unix.AT_FDCWD, in.Call, 0o644, 0) },
		"fchmodat2": func() error { return unix.Fchmodat(unix.AT_FDCWD, in.Call, 0o644, unix.AT_SYMLINK_NOFOLLOW) },
		"chown":     func() error { return unix.Chown(in.Call, os.Getuid(), os.Getgid()) },
		"lchown":    func() error { return unix.Lchown(in.Call, os.Getuid(), os.Getgid()) },
		"fchown":    on(func(fd int) error { return unix.Fchown(fd, os.Getuid(), os.Getgid()) }),
		"fchownat":  func() error { return unix.Fchownat(unix.AT_FDCWD, in.Call, os.Getuid(), os.Getgid(), 0) },
		"utimensat": func() error { return os.Chtimes(in.Call, time.Time{}, time.Now()) },
		"futimens":  on(func(fd int) error { return systemCall(unix.SYS_UTIMENSAT, uintptr(fd), 0, 0, 0) }),
		"setxattr":  func() error { return unix.Setxattr(in.Call, "user.x", []byte("x"), 0) },
		"lsetxattr": func() error { return unix.Lsetxattr(in.Call, "user.x", []byte("x"), 0) },
		"fsetxattr": on(func(fd int) error { return unix.Fsetxattr(fd, "user.x", []byte("x"), 0) }),
		"getxattr":  func() error { _, err := unix.Getxattr(in.Call, "user.x", make([]byte, 9)); return attribute(err) },
		"the flags": on(func(fd int) error { _, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS); return err }),
		"a lease":   on(func(fd int) error { _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); return err }),
		"a watch":   in.watch,
		"fast open": in.fastOpen,
	}
	for whose, id := range map[string]int{"": server, "own 0 ": 0, "own ": os.Getpid(), "own thread ": otherThread()} {
		calls[whose+"prlimit"] = func() error { return unix.Prlimit(id, unix.RLIMIT_NOFILE, nil, new(unix.Rlimit)) }
		calls[whose+"setpriority"] = func() error { return unix.Setpriority(unix.PRIO_PROCESS, id, 0) }
		calls[whose+"sched_setaffinity"] = func() error {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(id, &set); err != nil {
				return err
			}
			return unix.SchedSetaffinity(id, &set)
		}
		calls[whose+"sched_setattr"] = func() error { return unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0) }
		calls[whose+"ioprio_set"] = func() error { return systemCall(unix.SYS_IOPRIO_SET, 1, uintptr(id), 0) }
	}
	calls["pidfd_open"] = func() error {
		fd, err := unix.PidfdOpen(server, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}
	return calls
}

// attribute returns the error of reading an attribute, if it isn't that the file has none.
func attribute(err error) error {
	if errors.Is(err, unix.ENODATA) {
		return nil
	}
	return err
}

func systemCall(number uintptr, arguments ...uintptr) error {
	var all [6]uintptr
	copy(all[:], arguments)
	if _, _, errno := unix.Syscall6(number, all[0], all[1], all[2], all[3], all[4], all[5]); errno != 0 {
		return errno
	}
	return nil
}

// otherThread returns the id of a thread that lives on.
func otherThread() int {
	id := make(chan int)
	go func() {
		runtime.LockOSThread()
		id <- unix.Gettid()
		select {}
	}()
	return <-id
}

func (in *intrusion) watch() error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	_, err = unix.InotifyAddWatch(fd, in.Call, unix.IN_OPEN)
	return err
}

// fastOpen sends data to the first address of Dial with a connection's first packet.
func (in *intrusion) fastOpen() error {
	to, err := netip.ParseAddrPort(strings.TrimPrefix(in.Dial[0], "tcp "))
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
}
