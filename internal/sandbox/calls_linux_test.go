package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

func init() {
	for name, try := range map[string]func(object string) error{
		"lists":     func(string) error { return unexpected() },
		"x32":       func(string) error { return call(0x40000000|unix.SYS_GETPID, 0) },
		"32-bit":    func(string) error { return call32Bits() },
		"newer":     func(string) error { return call(newestCall+1, 0) },
		"chmod":     func(path string) error { return os.Chmod(path, 0o600) },
		"fchmod":    onFile(func(fd int) error { return unix.Fchmod(fd, 0o600) }),
		"chown":     func(path string) error { return os.Lchown(path, os.Getuid(), os.Getgid()) },
		"utimens":   func(path string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, path, make([]unix.Timespec, 2), 0) },
		"setxattr":  func(path string) error { return unix.Setxattr(path, "user.x", []byte("x"), 0) },
		"fsetxattr": onFile(func(fd int) error { return unix.Fsetxattr(fd, "user.x", []byte("x"), 0) }),
		"flags":     onFile(func(fd int) error { _, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS); return err }),
		"lease":     onFile(func(fd int) error { return fcntl(fd, unix.F_SETLEASE, unix.F_RDLCK) }),
		"watch":     watch,
		"owner":     onSocket(func(fd int) error { return fcntl(fd, unix.F_SETOWN, os.Getpid()) }),
		"network": onSocket(func(fd int) error {
			_, err := unix.IoctlGetInt(fd, unix.SIOCGSTAMP_NEW)
			return ignore(err, unix.ENOENT)
		}),
		"waiting":      onSocket(func(fd int) error { _, err := unix.IoctlGetInt(fd, unix.TIOCINQ); return err }),
		"truncate":     func(path string) error { return os.Truncate(path, 0) },
		"open-short":   func(path string) error { _, err := os.OpenFile(path, os.O_RDONLY|os.O_TRUNC, 0); return err },
		"fast-open":    fastOpen,
		"user-space":   func(string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"cloned-space": func(string) error { return inNewSpace() },
		"affinity": onProcess(func(id int) error {
			var set unix.CPUSet
			return errors.Join(unix.SchedGetaffinity(id, &set), unix.SchedSetaffinity(id, &set))
		}),
		"limit":       onProcess(func(id int) error { return unix.Prlimit(id, unix.RLIMIT_NOFILE, nil, new(unix.Rlimit)) }),
		"priority":    onProcess(func(id int) error { return unix.Setpriority(unix.PRIO_PROCESS, id, 0) }),
		"group":       onProcess(func(int) error { return unix.Setpriority(unix.PRIO_PGRP, 0, 0) }),
		"io-priority": onProcess(func(id int) error { return call(unix.SYS_IOPRIO_SET, 1, uintptr(id), 2<<13|4) }),
		"scheduler": onProcess(func(id int) error {
			return call(unix.SYS_SCHED_SETSCHEDULER, uintptr(id), 0, uintptr(unsafe.Pointer(new([2]int32))))
		}),
		"attributes": onProcess(func(id int) error { return unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0) }),
		"pidfd":      onProcess(func(id int) error { _, err := unix.PidfdOpen(id, 0); return err }),
		"kill":       onProcess(func(id int) error { return unix.Kill(id, 0) }),
		"tgkill":     onProcess(func(id int) error { return unix.Tgkill(id, id, 0) }),
	} {
		verbs[name] = func(object string) (string, error) { return done, try(object) }
	}
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

func call(number uintptr, arguments ...uintptr) error {
	var all [6]uintptr
	copy(all[:], arguments)
	if _, _, errno := unix.Syscall6(number, all[0], all[1], all[2], all[3], all[4], all[5]); errno != 0 {
		return errno
	}
	return nil
}

// unexpected makes all listed calls, with arguments that do no harm, and returns an error for those that are answered otherwise than listed.
func unexpected() error {
	var wrong []error
	for _, list := range [][]refusal{refusals, oldRefusals} {
		for _, group := range list {
			for _, number := range group.calls {
				const bad = ^uintptr(0)
				if err := call(uintptr(number), bad, bad, bad, bad, bad, bad); !errors.Is(err, group.errno) {
					wrong = append(wrong, fmt.Errorf("%d: %v, want %v", number, err, group.errno)) //nolint:errorlint // not to be found by tryAll
				}
			}
		}
	}
	return errors.Join(wrong...)
}

func onFile(do func(fd int) error) func(path string) error {
	return func(path string) error {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		return do(int(file.Fd()))
	}
}

func onSocket(do func(fd int) error) func(string) error {
	return func(string) error {
		fd, err := socket("stream")
		if err != nil {
			return err
		}
		return do(fd)
	}
}

// onProcess does something to the parent, to the caller by 0, or by the id of the process or of another thread.
func onProcess(do func(id int) error) func(whose string) error {
	return func(whose string) error {
		switch whose {
		case "parent":
			return do(os.Getppid())
		case "0":
			return do(0)
		case "own":
			return do(os.Getpid())
		}
		id, end := make(chan int), make(chan struct{})
		defer close(end)
		go func() {
			runtime.LockOSThread()
			id <- unix.Gettid()
			<-end
		}()
		return do(<-id)
	}
}

func fcntl(fd, command, argument int) error {
	_, err := unix.FcntlInt(uintptr(fd), command, argument)
	return err
}

func watch(path string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN)
	}
	return err
}

func fastOpen(address string) error {
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
}

func inNewSpace() error {
	cmd := exec.Command(os.Args[0], probing)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	return cmd.Run()
}

// What reaches beyond the program is refused, though Landlock doesn't restrict it; what concerns the program alone isn't.
func TestFilter(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dir := folderWithAttributes(t)
	path := filepath.Join(dir, "file")
	beyond := map[string]string{
		"chmod " + path: "EPERM", "fchmod " + path: "EPERM", "chown " + path: "EPERM", "utimens " + path: "EPERM",
		"setxattr " + path: "ENOTSUP", "fsetxattr " + path: "ENOTSUP",
		"flags " + path: "ENOTTY", "lease " + path: "EINVAL", "watch " + path: "EPERM",
		"owner": "EINVAL", "fast-open " + listener.Addr().String(): "ENOTSUP",
		"affinity parent": "EPERM", "limit parent": "EPERM", "priority parent": "EPERM", "io-priority parent": "EPERM", "scheduler parent": "EPERM",
		"attributes parent": "EPERM", "pidfd parent": "EPERM", "group": "EPERM",
	}
	if has32Bits() {
		beyond["32-bit"] = "EPERM"
	}
	out, err := exec.Command(os.Args[0], append([]string{probing}, slices.Collect(maps.Keys(beyond))...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var outside map[string]string
	if err := json.Unmarshal(out, &outside); err != nil {
		t.Fatal(err)
	}
	for attempt, end := range outside {
		if end != done {
			t.Errorf("outside of a box, %s ends with %s, and so isn't tested here", attempt, end)
		}
	}
	want := map[string]string{
		"lists": done, "x32": "ENOSYS", "newer": "ENOSYS", "network": "ENOTTY", "user-space": "EPERM", "cloned-space": "EPERM", "kill parent": "EPERM",
		"waiting": done, "truncate " + path: done, "tgkill own": done,
	}
	maps.Copy(want, beyond)
	for _, whose := range []string{"0", "own", "thread"} {
		for _, verb := range []string{"affinity", "limit", "priority", "io-priority", "scheduler", "attributes", "kill"} {
			want[verb+" "+whose] = done
		}
	}
	rules := rulesOfProbe()
	rules.Write, rules.Bind = []string{dir}, []int{1}
	for name, self := range map[string]string{"at once": "", "by way of an entry": "/proc/self/task"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := rules
			rules.Self = self
			if diff := cmp.Diff(want, try(t, rules, slices.Collect(maps.Keys(want))...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// folderWithAttributes returns a folder with a file, on a file system that has extended attributes: a tmpfs may have none.
func folderWithAttributes(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "testing")
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600)
	}
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Where Landlock is older, the filter does what it can't.
func TestFilter_ForOlderKernels(t *testing.T) {
	t.Parallel()
	dir := folderWithAttributes(t)
	path := filepath.Join(dir, "file")
	for name, c := range map[string]struct {
		kernel kernel
		want   map[string]string
	}{
		"no right to truncate": {kernel{abi: 2}, map[string]string{
			"truncate " + path: "EACCES", "open-short " + path: "EACCES", "read " + path: done, "open " + path: done,
			"kill parent": "EPERM", "tgkill parent": "EPERM", "kill 0": "EPERM", "kill own": done, "kill thread": done, "tgkill own": done,
		}},
		"no scope of signals": {kernel{abi: 5}, map[string]string{
			"truncate " + path: done, "open-short " + path: done, "kill parent": "EPERM", "kill 0": "EPERM", "tgkill own": done,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := rulesOfProbe()
			rules.Write = []string{dir}
			box, err := prepare(rules, c.kernel)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, tryIn(t, box, slices.Collect(maps.Keys(c.want))...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A container's own filter may have a judge, beside which the kernel allows no other. Then a program can name itself by 0 only.
func TestFilter_WithoutAJudge(t *testing.T) {
	t.Parallel()
	box, err := Prepare(rulesOfProbe())
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	cmd := exec.Command(os.Args[0], probing, "affinity 0", "affinity own", "affinity parent", "lists")
	var out bytes.Buffer
	cmd.Stdout = &out
	end, err := child.StartOnThread(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		fd, err := setFilter([]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return box.Start(cmd)
	})
	defer end()
	if err == nil {
		err = cmd.Wait()
	}
	var ends map[string]string
	if err := errors.Join(err, json.Unmarshal(out.Bytes(), &ends)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"affinity 0": done, "affinity own": "EPERM", "affinity parent": "EPERM", "lists": done}
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// judges counts the judges of this process.
func judges(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if name, err := os.Readlink(file); err == nil && strings.Contains(name, "seccomp notify") {
			n++
		}
	}
	return n
}

// A judge ends with the last thread that it could be asked about. Not parallel: it looks at all files of the process.
func TestFilter_EndsWithWhatItConfines(t *testing.T) {
	box, err := Prepare(rulesOfProbe())
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	cmd := exec.Command(os.Args[0], probing, "affinity own")
	end, err := child.StartOnThread(func() error { return box.Start(cmd) })
	if err == nil {
		err = cmd.Wait()
	}
	if got := judges(t); err != nil || got != 1 {
		t.Errorf("%d judges while a thread is confined; %v", got, err)
	}
	end()
	testkit.Eventually(t, "no judge is left", func() bool { return judges(t) == 0 })
}
