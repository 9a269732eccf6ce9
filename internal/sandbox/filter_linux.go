package sandbox

import (
	"iter"
	"maps"
	"runtime"
	"slices"

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

type filter []unix.SockFilter

func (f *filter) load(offset uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (f *filter) answer(with uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with})
}

// keep clears all bits of the loaded value but those of a mask.
func (f *filter) keep(mask uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask})
}

// when runs body if the loaded value compares to value, and continues after it otherwise. Programs of more than 255 instructions are too
// long for a body.
func (f *filter) when(comparison uint16, value uint32, body func()) {
	at := len(*f)
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, K: value})
	body()
	(*f)[at].Jf = uint8(len(*f) - at - 1) //nolint:gosec // bodies are short
}

// loadArgument loads the lower half of an argument, which is all that the kernel takes of an int.
func (f *filter) loadArgument(n uint32) { f.load(offsetArguments + n*argumentSize) }

func refuse(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) } //nolint:gosec // error numbers are small

// newFilter returns the filter for a kernel; nil on an unsupported architecture. System calls that it doesn't mention are allowed.
//
// It is no list of what is allowed, because nobody knows what the drivers of GPUs call. But no call is allowed that is newer than the list
// of those that are refused, and nothing that drivers are known to need is on it.
func newFilter(r *Rules, k kernel) []unix.SockFilter {
	architecture, ok := architectures[runtime.GOARCH]
	if !ok {
		return nil
	}
	var f filter
	f.load(offsetArchitecture)
	f = append(f, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: architecture, Jt: 1})
	f.answer(refuse(unix.EPERM)) // system calls of another architecture
	f.load(offsetCall)
	f.when(unix.BPF_JGT, newestCall, func() { f.answer(refuse(unix.ENOSYS)) }) // also amd64's x32 calls, whose numbers have a further bit
	for _, refused := range [][]refusal{refusals, oldRefusals} {
		for _, group := range refused {
			for _, call := range group.calls {
				f.when(unix.BPF_JEQ, call, func() { f.answer(refuse(group.errno)) })
			}
		}
	}
	if len(r.Connect) == 0 {
		f.when(unix.BPF_JEQ, unix.SYS_CONNECT, func() { f.answer(refuse(unix.EACCES)) })
	}
	f.when(unix.BPF_JEQ, unix.SYS_SOCKET, func() { f.sockets(r) })
	f.when(unix.BPF_JEQ, unix.SYS_SOCKETPAIR, func() { f.sockets(r) })
	f.fastOpen()
	f.control()
	f.namespaces()
	f.processes(k)
	if k.abi < truncateABI {
		f.truncation()
	}
	f.answer(unix.SECCOMP_RET_ALLOW)
	return f
}

// sockets allows sockets that need a connection only, since connect is refused, or restricted by Landlock. For the internet it allows
// only TCP, because Landlock doesn't restrict other protocols, such as multipath TCP.
func (f *filter) sockets(r *Rules) {
	const kinds = 0xf // the other bits are flags
	f.loadArgument(1)
	f.keep(kinds)
	if r.SeqPacket {
		f.when(unix.BPF_JEQ, unix.SOCK_SEQPACKET, func() {
			f.loadArgument(0)
			f.when(unix.BPF_JEQ, unix.AF_UNIX, func() { f.answer(unix.SECCOMP_RET_ALLOW) })
			f.answer(refuse(unix.EAFNOSUPPORT))
		})
	}
	f.when(unix.BPF_JEQ, unix.SOCK_STREAM, func() {
		f.loadArgument(0)
		f.when(unix.BPF_JEQ, unix.AF_UNIX, func() { f.answer(unix.SECCOMP_RET_ALLOW) })
		if len(r.Bind)+len(r.Connect) == 0 {
			return
		}
		for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
			f.when(unix.BPF_JEQ, family, func() {
				f.loadArgument(2)
				for _, protocol := range []uint32{0, unix.IPPROTO_TCP} {
					f.when(unix.BPF_JEQ, protocol, func() { f.answer(unix.SECCOMP_RET_ALLOW) })
				}
				f.answer(refuse(unix.EAFNOSUPPORT))
			})
		}
	})
	f.answer(refuse(unix.EAFNOSUPPORT))
}

// fastOpen refuses to send data with the first packet of a connection, which Landlock doesn't see as one.
func (f *filter) fastOpen() {
	for call, flags := range inOrder(map[uint32]uint32{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3}) {
		f.when(unix.BPF_JEQ, call, func() {
			f.loadArgument(flags)
			f.when(unix.BPF_JSET, unix.MSG_FASTOPEN, func() { f.answer(refuse(unix.EOPNOTSUPP)) })
			f.answer(unix.SECCOMP_RET_ALLOW)
		})
	}
}

// control restricts what can be done with a descriptor, besides reading and writing, to what concerns the program alone.
func (f *filter) control() {
	f.when(unix.BPF_JEQ, unix.SYS_FCNTL, func() {
		f.loadArgument(1)
		for _, command := range fcntlCommands {
			f.when(unix.BPF_JEQ, command, func() { f.answer(unix.SECCOMP_RET_ALLOW) })
		}
		f.answer(refuse(unix.EINVAL))
	})
	f.when(unix.BPF_JEQ, unix.SYS_IOCTL, func() {
		f.loadArgument(1)
		f.when(unix.BPF_JEQ, unix.TIOCSTI, func() { f.answer(refuse(unix.EPERM)) }) // input for the terminal
		f.keep(0xff00)
		for _, kind := range ioctlKinds {
			f.when(unix.BPF_JEQ, kind<<8, func() { f.answer(refuse(unix.ENOTTY)) })
		}
		f.answer(unix.SECCOMP_RET_ALLOW)
	})
}

// namespaces refuses new ones, in which a program has rights that it doesn't have outside.
func (f *filter) namespaces() {
	const spaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	for call, kinds := range inOrder(map[uint32]uint32{unix.SYS_CLONE: spaces, unix.SYS_UNSHARE: spaces | unix.CLONE_NEWTIME}) {
		f.when(unix.BPF_JEQ, call, func() {
			f.loadArgument(0)
			f.when(unix.BPF_JSET, kinds, func() { f.answer(refuse(unix.EPERM)) })
			f.answer(unix.SECCOMP_RET_ALLOW)
		})
	}
}

// processes has calls that take the id of a process or a thread decided by the [judge], unless the id is 0, which is the caller's own.
func (f *filter) processes(k kernel) {
	for _, call := range ofProcess {
		f.when(unix.BPF_JEQ, call, func() {
			f.loadArgument(0)
			f.when(unix.BPF_JEQ, 0, func() { f.answer(unix.SECCOMP_RET_ALLOW) })
			f.answer(unix.SECCOMP_RET_USER_NOTIF)
		})
	}
	for call, process := range inOrder(ofKind) {
		f.when(unix.BPF_JEQ, call, func() {
			f.loadArgument(0)
			f.when(unix.BPF_JEQ, process, func() {
				f.loadArgument(1)
				f.when(unix.BPF_JEQ, 0, func() { f.answer(unix.SECCOMP_RET_ALLOW) })
				f.answer(unix.SECCOMP_RET_USER_NOTIF)
			})
			f.answer(refuse(unix.EPERM)) // groups of processes, and all of a user
		})
	}
	if k.scopesSignals() {
		return
	}
	for _, call := range ofSignals {
		f.when(unix.BPF_JEQ, call, func() { f.answer(unix.SECCOMP_RET_USER_NOTIF) })
	}
	f.when(unix.BPF_JEQ, unix.SYS_PIDFD_SEND_SIGNAL, func() { f.answer(refuse(unix.EPERM)) })
}

// truncation refuses what cuts a file off without opening it for writing, on kernels whose Landlock has no right for that.
func (f *filter) truncation() {
	f.when(unix.BPF_JEQ, unix.SYS_TRUNCATE, func() { f.answer(refuse(unix.EACCES)) })
	f.when(unix.BPF_JEQ, unix.SYS_OPENAT2, func() { f.answer(refuse(unix.ENOSYS)) }) // its flags are in memory
	for call, flags := range inOrder(opening) {
		f.when(unix.BPF_JEQ, call, func() {
			f.loadArgument(flags)
			f.keep(unix.O_ACCMODE | unix.O_TRUNC)
			f.when(unix.BPF_JEQ, unix.O_RDONLY|unix.O_TRUNC, func() { f.answer(refuse(unix.EACCES)) })
			f.answer(unix.SECCOMP_RET_ALLOW)
		})
	}
}

// inOrder visits a map in the order of its keys, so that programs of the same rules are the same.
func inOrder(of map[uint32]uint32) iter.Seq2[uint32, uint32] {
	return func(yield func(uint32, uint32) bool) {
		for _, key := range slices.Sorted(maps.Keys(of)) {
			if !yield(key, of[key]) {
				return
			}
		}
	}
}
