package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is struct seccomp_notif: a call that waits for a decision.
type notification struct {
	id           uint64
	thread       uint32 // that calls
	_            uint32 // flags
	call         int32
	architecture uint32
	_            uint64 // where the thread is in its program
	arguments    [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	_     int64 // what the call returns
	errno int32 // negative
	flags uint32
}

// judge decides the calls of the threads below a filter that a filter can't decide: whether the process or the thread that a call is about
// belongs to the process that calls. A program sets the affinity and the priority of its threads by their ids.
type judge struct{ listener *os.File }

// run decides calls until no thread is left below the filter. It is closed then.
func (j *judge) run() {
	defer func() { _ = j.listener.Close() }()
	raw, err := j.listener.SyscallConn()
	if err != nil {
		return
	}
	for over := false; !over && err == nil; {
		err = raw.Read(func(fd uintptr) bool {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // file descriptors fit
			if n, err := unix.Poll(poll, 0); errors.Is(err, unix.EINTR) || err == nil && n == 0 {
				return false
			}
			if poll[0].Revents&unix.POLLIN == 0 {
				over = true
				return true
			}
			decide(fd)
			return true
		})
	}
}

// decide takes a call and answers it. The call may be over meanwhile, by a signal; then there is none, or nobody to answer.
func decide(fd uintptr) {
	var n notification
	//nolint:gosec // a system call takes no other pointer
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return
	}
	r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	id := n.arguments[0]
	if _, ok := ofKind[uint32(n.call)]; ok { //nolint:gosec // numbers of calls aren't negative
		id = n.arguments[1]
	}
	own := fmt.Sprintf("/proc/%d/task/%d", n.thread, int32(id)) //nolint:gosec // the kernel takes the lower half
	if _, err := os.Stat(own); err != nil {
		r.errno, r.flags = -int32(unix.EPERM), 0
	}
	//nolint:gosec // a system call takes no other pointer
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
}

// enterFilter applies the filter to the calling thread, and has a judge decide what it leaves open.
func enterFilter(program []unix.SockFilter) error {
	if len(program) == 0 {
		return nil
	}
	fd, err := setFilter(program, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if err == nil {
		_ = unix.SetNonblock(fd, true)
		go (&judge{os.NewFile(uintptr(fd), "seccomp")}).run()
		return nil
	}
	// Nothing else can decide here, such as in a container whose own filter has a judge: the kernel allows one.
	program = slices.Clone(program)
	for i := range program {
		if program[i].Code == unix.BPF_RET|unix.BPF_K && program[i].K == unix.SECCOMP_RET_USER_NOTIF {
			program[i].K = refuse(unix.EPERM)
		}
	}
	_, err = setFilter(program, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) { // these: the kernel has no filters
		return fmt.Errorf("setting the filter of system calls: %w", err)
	}
	return nil
}

// setFilter applies a filter to the calling thread. With SECCOMP_FILTER_FLAG_NEW_LISTENER it returns a descriptor.
func setFilter(program []unix.SockFilter, flags uintptr) (fd int, err error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]} //nolint:gosec // it is short
	//nolint:gosec // a system call takes no other pointer
	n, _, errno := syscall.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
