package entry

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// variable tells this program, started again, to take the step. Its value is an Entry.
const variable = "LMCADDY_ENTRY"

// Entry is what the step needs to know.
type Entry struct {
	Ruleset int    // the file descriptor of Landlock's ruleset
	Status  int    // that of a pipe, to which is written why the step failed; the execution of the program closes it
	Rights  uint64 // Landlock's, for Self
	Death   int    // the signal that the process gets when the thread that started it ends; 0: none
	Parent  int    // the id of the process of that thread
	Ignored uint64 // the signals that the program is to ignore, from the lowest bit on
	Blocked uint64 // those that are to be blocked in it
	Self    string // a path without spaces, below /proc/self or that itself
	Path    string // of the program
}

// numbers is how many fields of an Entry come before Self.
const numbers = 7

// Env returns the entry as an element of an environment.
func (e *Entry) Env() string {
	//nolint:gosec // none is negative
	all := [numbers]uint64{uint64(e.Ruleset), uint64(e.Status), e.Rights, uint64(e.Death), uint64(e.Parent), e.Ignored, e.Blocked}
	var fields []string
	for _, n := range all {
		fields = append(fields, strconv.FormatUint(n, 10))
	}
	return variable + "=" + strings.Join(append(fields, e.Self, e.Path), " ")
}

func parse(value string) (*Entry, error) {
	parts := strings.SplitN(value, " ", numbers+2)
	if len(parts) < numbers+2 {
		return nil, errors.New("a part is missing")
	}
	var n [numbers]uint64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseUint(parts[i], 10, 64); err != nil {
			return nil, err
		}
	}
	//nolint:gosec // these were ints
	return &Entry{
		Ruleset: int(n[0]), Status: int(n[1]), Rights: n[2], Death: int(n[3]), Parent: int(n[4]), Ignored: n[5], Blocked: n[6],
		Self: parts[numbers], Path: parts[numbers+1],
	}, nil
}

// init takes the step. It runs on the process's main thread.
func init() {
	value, ok := syscall.Getenv(variable)
	if !ok {
		return
	}
	e, err := parse(value)
	if err != nil {
		_, _ = os.Stderr.WriteString(variable + " is only for what lmcaddy starts: " + err.Error() + "\n")
		os.Exit(1)
	}
	step, errno := e.take()
	_, _ = syscall.Write(e.Status, []byte(strconv.Itoa(int(errno))+" "+step))
	os.Exit(1)
}

// Failure parses what the step has written to its status. An empty doing says that the program couldn't be executed.
func Failure(status string) (doing string, err syscall.Errno) {
	code, doing, _ := strings.Cut(status, " ")
	n, _ := strconv.Atoi(code)
	return doing, syscall.Errno(n)
}

// Values of Linux that package syscall lacks. They are the same on all architectures for which lmcaddy is built.
const (
	landlockAddRule     = 445
	landlockRestrict    = 446
	landlockPathBeneath = 1
	openPath            = 0x200000 // O_PATH
	ignoreSignal        = 1        // SIG_IGN
	setMask             = 2        // SIG_SETMASK
	signalSetSize       = 8        // bytes
)

// take returns only after an error.
func (e *Entry) take() (doing string, errno syscall.Errno) {
	syscall.CloseOnExec(e.Ruleset)
	syscall.CloseOnExec(e.Status)
	if e.Death != 0 { // set by the parent before, but lost if this program's file has capabilities
		if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(e.Death), 0); errno != 0 {
			return "tying it to its parent", errno
		}
		if syscall.Getppid() != e.Parent {
			return "finding its parent", syscall.ESRCH
		}
	}
	// The program inherits this descriptor. It keeps the kernel from forgetting the inode and making another one, without the rule, when
	// memory is short.
	self, err := syscall.Open(e.Self, openPath, 0)
	if err != nil {
		return "opening " + e.Self, number(err)
	}
	rule := struct { // landlock_path_beneath_attr, which is packed: this is longer, but only at its end
		rights uint64
		fd     int32
	}{e.Rights, int32(self)} //nolint:gosec // file descriptors fit
	//nolint:gosec // a system call takes no other pointer
	_, _, errno = syscall.RawSyscall6(landlockAddRule, uintptr(e.Ruleset), landlockPathBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return "allowing " + e.Self, errno
	}
	if _, _, errno := syscall.RawSyscall(landlockRestrict, uintptr(e.Ruleset), 0, 0); errno != 0 {
		return "entering the Landlock sandbox", errno
	}
	// Go's runtime handles signals that were ignored, and unblocks some of those that were blocked. This is undone.
	for sig := range uintptr(64) {
		if e.Ignored&(1<<sig) != 0 {
			action := [5]uintptr{ignoreSignal} // struct sigaction begins with the handler, and is no longer than that
			//nolint:gosec // a system call takes no other pointer
			_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig+1, uintptr(unsafe.Pointer(&action)), 0, signalSetSize, 0, 0)
		}
	}
	//nolint:gosec // a system call takes no other pointer
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&e.Blocked)), 0, signalSetSize, 0, 0)
	env := syscall.Environ()
	for i, v := range env {
		if strings.HasPrefix(v, variable+"=") {
			env = append(env[:i], env[i+1:]...)
			break
		}
	}
	return "", number(syscall.Exec(e.Path, os.Args, env))
}

func number(err error) syscall.Errno {
	errno, _ := errors.AsType[syscall.Errno](err)
	return errno
}
