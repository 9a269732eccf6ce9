package sandbox

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lmcaddy/lmcaddy/internal/entry"
)

// Start starts a command in the box. It confines the calling thread, and the processes that it starts, for good. The caller must have
// locked the thread (runtime.LockOSThread) and must never unlock it: then Go ends the thread with its goroutine, and creates no threads
// from it. It must not be the main thread of the process, which doesn't end. A box with Rules.Self is for one command: others would be
// allowed to write what belongs to the first.
func (b *Box) Start(cmd *exec.Cmd) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if b.self == "" {
		if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(b.ruleset), 0, 0); errno != 0 {
			return fmt.Errorf("entering the Landlock sandbox: %w", errno)
		}
	}
	// Package os finds out once which calls for processes there are. This has to be outside of the filter.
	if this, err := os.FindProcess(os.Getpid()); err == nil {
		_ = this.Release()
	}
	if err := enterFilter(b.filter); err != nil {
		return err
	}
	if b.self == "" {
		return cmd.Start()
	}
	return b.startByEntry(cmd)
}

// firstExtra is the file descriptor that a process has for the first of its command's ExtraFiles.
const firstExtra = 3

// startByEntry starts a command in two steps: see package entry. The calling thread is confined but for Landlock.
func (b *Box) startByEntry(cmd *exec.Cmd) error {
	status, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = status.Close() }()
	defer func() { _ = theirs.Close() }()
	fd, err := unix.FcntlInt(uintptr(b.ruleset), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ruleset := os.NewFile(uintptr(fd), "ruleset")
	defer func() { _ = ruleset.Close() }()

	path, env, files := cmd.Path, cmd.Env, cmd.ExtraFiles
	defer func() { cmd.Path, cmd.Env, cmd.ExtraFiles = path, env, files }()
	e := entry.Entry{
		Ruleset: firstExtra + len(files), Status: firstExtra + len(files) + 1, Rights: b.selfRights, Parent: os.Getpid(),
		Ignored: ignoredSignals(), Blocked: blockedSignals(), Self: b.self, Path: path,
	}
	if cmd.SysProcAttr != nil {
		e.Death = int(cmd.SysProcAttr.Pdeathsig)
	}
	cmd.Path = "/proc/self/exe"
	cmd.Env = append(cmd.Environ(), e.Env())
	cmd.ExtraFiles = append(slices.Clone(files), ruleset, theirs)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting this program again to enter the sandbox: %w", err)
	}
	_ = theirs.Close()
	said, err := io.ReadAll(status)
	if err == nil && len(said) == 0 {
		return nil // the execution of the program has closed it
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		return err
	}
	doing, errno := entry.Failure(string(said))
	if doing == "" {
		return &fs.PathError{Op: "fork/exec", Path: path, Err: errno} // as without an entry
	}
	return fmt.Errorf("%s: %w", doing, errno)
}

// ignoredSignals returns the signals that this process ignores, from the lowest bit on.
func ignoredSignals() (set uint64) {
	for sig := range 64 {
		if signal.Ignored(syscall.Signal(sig + 1)) {
			set |= 1 << sig
		}
	}
	return set
}

// blockedSignals returns the signals that are blocked in the calling thread, from the lowest bit on.
func blockedSignals() (set uint64) {
	//nolint:gosec // a system call takes no other pointer
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_BLOCK, 0, uintptr(unsafe.Pointer(&set)), unsafe.Sizeof(set), 0, 0)
	return set
}
