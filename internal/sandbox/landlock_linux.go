package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock rights by purpose.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir   = unix.LANDLOCK_ACCESS_FS_READ_DIR
	execute   = unix.LANDLOCK_ACCESS_FS_EXECUTE
	ioctl     = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	change    = writeFile | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REFER
	// onFiles are the rights that a rule for a file may have.
	onFiles = readFile | execute | ioctl | writeFile
	tcp     = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
)

const (
	rulePath = unix.LANDLOCK_RULE_PATH_BENEATH
	rulePort = 2 // LANDLOCK_RULE_NET_PORT
	// fixedSignals is a bit of the errata. Without it a confined thread can't signal other threads of its process, which Go's runtime does.
	fixedSignals = 1 << 1
	// truncateABI is the first with a right to truncate files.
	truncateABI = 3
)

// portRule is struct landlock_net_port_attr.
type portRule struct{ access, port uint64 }

type kernel struct {
	abi    int
	errata int
	err    error
}

var probe = sync.OnceValue(func() kernel {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
	case unix.ENOSYS:
		return kernel{err: fmt.Errorf("%w: the kernel has no Landlock", ErrUnavailable)}
	case unix.EOPNOTSUPP:
		return kernel{err: fmt.Errorf("%w: the kernel's Landlock is switched off", ErrUnavailable)}
	default:
		return kernel{err: fmt.Errorf("%w: Landlock: %w", ErrUnavailable, errno)}
	}
	k := kernel{abi: int(abi)}
	if errata, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA); errno == 0 {
		k.errata = int(errata)
	}
	return k
})

// State returns what the sandbox consists of, such as "landlock, ABI 7". The error wraps ErrUnavailable.
func State() (string, error) {
	k := probe()
	if k.err != nil {
		return "", k.err
	}
	return fmt.Sprintf("landlock, ABI %d", k.abi), nil
}

// scopesSignals reports whether Landlock keeps a program from sending signals out of its box.
func (k kernel) scopesSignals() bool { return k.abi >= 6 && k.errata&fixedSignals != 0 }

// handled returns the rights that require a rule, as far as the kernel supports them.
func (k kernel) handled() (attr unix.LandlockRulesetAttr, size uintptr) {
	attr.Access_fs = unix.LANDLOCK_ACCESS_FS_REFER - 1 // all rights of the first ABI
	size = unsafe.Sizeof(attr.Access_fs)
	if k.abi >= 2 {
		attr.Access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if k.abi >= truncateABI {
		attr.Access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if k.abi >= 4 {
		attr.Access_net = tcp
		size += unsafe.Sizeof(attr.Access_net)
	}
	if k.abi >= 5 {
		attr.Access_fs |= ioctl
	}
	if k.abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		if k.scopesSignals() {
			attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
		size += unsafe.Sizeof(attr.Scoped)
	}
	return attr, size
}

// Box is a prepared sandbox.
type Box struct {
	ruleset    int
	filter     []unix.SockFilter
	self       string // Rules.Self
	selfRights uint64
}

// Prepare creates a Box. The error wraps ErrUnavailable if the kernel has no sandbox.
func Prepare(r Rules) (*Box, error) { return prepare(r, probe()) }

func prepare(r Rules, k kernel) (*Box, error) {
	if k.err != nil {
		return nil, k.err
	}
	attr, size := k.handled()
	//nolint:gosec // a system call takes no other pointer
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, fmt.Errorf("making a Landlock ruleset: %w", errno)
	}
	b := &Box{ruleset: int(fd), filter: newFilter(&r, k), self: r.Self, selfRights: writeFile & attr.Access_fs}
	if err := b.allow(&r, attr); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Box) allow(r *Rules, handled unix.LandlockRulesetAttr) error {
	for _, kind := range []struct {
		paths  []string
		rights uint64
	}{
		{r.Read, readFile | readDir},
		{r.Execute, readFile | readDir | execute},
		{r.List, readDir},
		{r.Devices, readFile | readDir | writeFile | ioctl},
		{r.Write, readFile | readDir | change},
	} {
		for _, path := range kind.paths {
			if err := b.allowPath(path, kind.rights&handled.Access_fs); err != nil {
				return fmt.Errorf("allowing %s: %w", path, err)
			}
		}
	}
	for _, kind := range []struct {
		ports []int
		right uint64
	}{{r.Bind, unix.LANDLOCK_ACCESS_NET_BIND_TCP}, {r.Connect, unix.LANDLOCK_ACCESS_NET_CONNECT_TCP}} {
		for _, port := range kind.ports {
			if handled.Access_net == 0 {
				continue // older kernels don't restrict ports
			}
			rule := portRule{kind.right, uint64(port)}                     //nolint:gosec // ports aren't negative
			if err := b.add(rulePort, unsafe.Pointer(&rule)); err != nil { //nolint:gosec // a system call takes no other pointer
				return fmt.Errorf("allowing port %d: %w", port, err)
			}
		}
	}
	return nil
}

func (b *Box) allowPath(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR) {
		return nil // the program can't use it anyway
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= onFiles
	}
	if rights == 0 {
		return nil
	}
	// The kernel's struct is packed. Go's is longer, but only at its end.
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)} //nolint:gosec // file descriptors fit
	//nolint:gosec // a system call takes no other pointer
	return b.add(rulePath, unsafe.Pointer(&rule))
}

func (b *Box) add(kind uintptr, rule unsafe.Pointer) error {
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(b.ruleset), kind, uintptr(rule), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// Close releases the Box. What was started in it stays confined.
func (b *Box) Close() { _ = unix.Close(b.ruleset) }
