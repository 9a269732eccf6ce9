package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// architectures are those that the filter supports, by GOARCH. Others get no filter.
var architectures = map[string]uint32{
	"amd64":   unix.AUDIT_ARCH_X86_64,
	"arm64":   unix.AUDIT_ARCH_AARCH64,
	"riscv64": unix.AUDIT_ARCH_RISCV64,
}

// Offsets in struct seccomp_data. The lower half of an argument comes first: all supported architectures are little-endian.
const (
	offsetCall         = 0
	offsetArchitecture = 4
	offsetArguments    = 16
	argumentSize       = 8
)

// x32 is a bit in the numbers of amd64's x32 system calls.
const x32 = 0x40000000

// filter is a BPF program.
type filter []unix.SockFilter

func (f *filter) load(offset uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

// answer returns from the program.
func (f *filter) answer(with uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with})
}

// when runs body if the loaded value compares to value, and continues after it otherwise.
func (f *filter) when(comparison uint16, value uint32, body func()) {
	at := len(*f)
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, K: value})
	body()
	(*f)[at].Jf = uint8(len(*f) - at - 1) //nolint:gosec // bodies are short
}

func refuse(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) } //nolint:gosec // error numbers are small

// newFilter returns the filter; nil on an unsupported architecture.
func newFilter(r *Rules) []unix.SockFilter {
	architecture, ok := architectures[runtime.GOARCH]
	if !ok {
		return nil
	}
	var f filter
	f.load(offsetArchitecture)
	f.when(unix.BPF_JEQ, architecture, func() { f.calls(r) })
	f.answer(refuse(unix.EPERM)) // system calls of another architecture
	return f
}

// calls checks the system call. Those not mentioned are allowed.
func (f *filter) calls(r *Rules) {
	f.load(offsetCall)
	if runtime.GOARCH == "amd64" {
		f.when(unix.BPF_JGE, x32, func() { f.answer(refuse(unix.ENOSYS)) })
	}
	// io_uring performs other system calls unseen by the filter.
	f.when(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP, func() { f.answer(refuse(unix.ENOSYS)) })
	if len(r.Connect) == 0 {
		f.when(unix.BPF_JEQ, unix.SYS_CONNECT, func() { f.answer(refuse(unix.EACCES)) })
	}
	f.when(unix.BPF_JEQ, unix.SYS_SOCKET, func() { f.sockets(r) })
	f.when(unix.BPF_JEQ, unix.SYS_SOCKETPAIR, func() { f.sockets(r) })
	f.answer(unix.SECCOMP_RET_ALLOW)
}

// sockets allows sockets that need a connection only, since connect is refused, or restricted by Landlock. For the internet it allows
// only TCP, because Landlock doesn't restrict other protocols, such as multipath TCP.
func (f *filter) sockets(r *Rules) {
	const kinds = 0xf // the other bits are flags
	f.load(offsetArguments + argumentSize)
	*f = append(*f, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kinds})
	if r.SeqPacket {
		f.when(unix.BPF_JEQ, unix.SOCK_SEQPACKET, func() {
			f.load(offsetArguments)
			f.when(unix.BPF_JEQ, unix.AF_UNIX, func() { f.answer(unix.SECCOMP_RET_ALLOW) })
			f.answer(refuse(unix.EAFNOSUPPORT))
		})
	}
	f.when(unix.BPF_JEQ, unix.SOCK_STREAM, func() {
		f.load(offsetArguments)
		f.when(unix.BPF_JEQ, unix.AF_UNIX, func() { f.answer(unix.SECCOMP_RET_ALLOW) })
		if !r.usesTCP() {
			return
		}
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
			f.when(unix.BPF_JEQ, family, func() {
				f.load(offsetArguments + 2*argumentSize)
				for _, protocol := range []uint32{0, unix.IPPROTO_TCP} {
					f.when(unix.BPF_JEQ, protocol, func() { f.answer(unix.SECCOMP_RET_ALLOW) })
				}
				f.answer(refuse(unix.EAFNOSUPPORT))
			})
		}
	})
	f.answer(refuse(unix.EAFNOSUPPORT))
}

// enterFilter applies the filter to the calling thread.
func enterFilter(program []unix.SockFilter) error {
	if len(program) == 0 {
		return nil
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}                                 //nolint:gosec // it is short
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0) //nolint:gosec // a system call takes no other pointer
	if err != nil && !errors.Is(err, unix.EINVAL) {                                                        // EINVAL: the kernel has no filters
		return fmt.Errorf("setting the filter of system calls: %w", err)
	}
	return nil
}
