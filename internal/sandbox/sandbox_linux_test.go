package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

// What CUDA does is possible in a box for a GPU alone, and there nothing of another process or of the system can be written, even by root.
func TestBox_ForAGPU(t *testing.T) {
	t.Parallel()
	const refused, unknown, named = "EACCES", "EAFNOSUPPORT", "cuda-EvtHandlr"
	parent := fmt.Sprintf("/proc/%d/", os.Getpid())
	if err := os.WriteFile(parent+"coredump_filter", []byte("0x33"), 0); err != nil {
		t.Fatal("outside of a box:", err)
	}
	attempts := []string{
		"name", "open /proc/thread-self/comm", "open /proc/self/comm", "open /proc/self/oom_score_adj", "open /proc/self/coredump_filter",
		"bind seqpacket", "connect seqpacket", "bind stream", "connect stream", "socket datagram", "socket SCTP",
	}
	for _, other := range []string{
		"comm", "oom_score_adj", "oom_adj", "coredump_filter", "clear_refs", "task/" + filepath.Base(parent) + "/comm", "task/" + filepath.Base(parent) + "/oom_score_adj",
	} {
		attempts = append(attempts, "open "+parent+other)
	}
	settings, err := filepath.Glob("/proc/sys/kernel/*")
	if err != nil || len(settings) == 0 {
		t.Fatal(settings, err)
	}
	for _, setting := range append(settings, "/proc/sys/vm/drop_caches", "/proc/1/oom_score_adj", "/proc/sysrq-trigger") {
		if info, err := os.Stat(setting); err == nil && info.Mode().IsRegular() {
			attempts = append(attempts, "open "+setting)
		}
	}
	plain, narrow, wide := rulesOfProbe(), rulesOfProbe(), rulesOfProbe()
	narrow.Self, narrow.SeqPacket = "/proc/self/task", true
	wide.Self, wide.SeqPacket = "/proc/self", true
	for name, c := range map[string]struct {
		rules   Rules
		differs map[string]string
	}{
		"none":   {plain, map[string]string{"bind seqpacket": unknown, "connect seqpacket": unknown}},
		"narrow": {narrow, map[string]string{"name": named, "open /proc/thread-self/comm": done}},
		"wide": {wide, map[string]string{
			"name": named, "open /proc/thread-self/comm": done, "open /proc/self/comm": done, "open /proc/self/oom_score_adj": done, "open /proc/self/coredump_filter": done,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := map[string]string{}
			for _, attempt := range attempts {
				want[attempt] = refused
			}
			want["bind stream"], want["bind seqpacket"], want["socket datagram"], want["socket SCTP"] = done, done, unknown, unknown
			maps.Copy(want, c.differs)
			if diff := cmp.Diff(want, try(t, c.rules, attempts...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A process that the program starts has files of its own below /proc, which it can't write.
func TestSelf_IsNotWhatTheProgramStarts(t *testing.T) {
	t.Parallel()
	rules := rulesOfProbe()
	rules.Self = "/proc/self"
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("/bin/sh", "-c", "echo x > /proc/self/comm && echo own; sh -c 'echo x > /proc/self/comm' || echo refused")
	cmd.Stdout = out
	rules.Execute = append(rules.Execute, "/bin")
	if err := startIn(t, rules, cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(out.Name()); err != nil || string(got) != "own\nrefused\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// showing returns what a command prints that shows how it was started.
func showing(t *testing.T, self string, cmd *exec.Cmd) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Args[0] = "another name"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "A=b c", "EMPTY="}
	cmd.Dir = "/usr"
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{out, out}
	cmd.SysProcAttr = child.OwnGroup()
	path := cmd.Path
	rules := rulesOfProbe()
	rules.Execute, rules.Self = append(rules.Execute, "/bin"), self
	box, err := Prepare(rules)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	end, err := child.StartOnThread(func() error {
		set := unix.Sigset_t{}
		set.Val[0] = 1 << (unix.SIGTERM - 1)
		if err := errors.Join(unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil), unix.Unshare(unix.CLONE_FS)); err != nil {
			return err
		}
		unix.Umask(0o027)
		return box.Start(cmd)
	})
	defer end()
	if err != nil {
		t.Fatal(err)
	}
	if cmd.Path != path || len(cmd.Env) != 3 || len(cmd.ExtraFiles) != 2 {
		t.Errorf("the command was changed: %+v", cmd)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	said := strings.ReplaceAll(string(text), fmt.Sprint("/", cmd.Process.Pid, "/"), "/PID/")
	return strings.ReplaceAll(said, out.Name(), "OUT")
}

// changing matches what differs between any two processes in what the system says about them.
var changing = regexp.MustCompile(`(?m)^(Pid|Tgid|Ngid|PPid|NSpid|NStgid|NSpgid|Vm.*|Rss.*|.*ctxt_switches|SigQ|Cpus_allowed.*|HugetlbPages):.*\n`)

// ignored matches the signals that a process ignores, in hexadecimal digits.
var ignored = regexp.MustCompile(`(?m)^SigIgn:\t(\w+)$`)

// A program that is started by way of an entry finds everything as one that is started at once, but for the descriptor that keeps the
// inode of its files. Not parallel: it changes what the process ignores.
func TestSelf_TheProgramFindsAllAsElse(t *testing.T) {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGUSR1)
	defer signal.Reset(syscall.SIGPIPE, syscall.SIGUSR1)
	const self = "/proc/self/task"
	const script = `echo "$0" "$@"; env | sort; pwd; for fd in 3 4 5 6 7 8 9; do test -e /proc/$$/fd/$fd && readlink /proc/$$/fd/$fd; done; true`
	for name, c := range map[string]struct {
		command func() *exec.Cmd
		has     []string // parts of what it prints
		more    string   // printed besides, by way of an entry
	}{
		"what it is given": {
			func() *exec.Cmd {
				return exec.Command("/bin/sh", "-c", script, "a name", "", "an argument", "a\nnother")
			},
			[]string{"a name  an argument a\nnother\nA=b c\nEMPTY=\nPATH=/usr/bin:/bin\nPWD=/usr\n/usr\nOUT\nOUT\n"},
			"/proc/PID/task\n",
		},
		"what the system says": {
			func() *exec.Cmd {
				return exec.Command("/bin/cat", "/proc/self/status", "/proc/self/limits", "/proc/self/cmdline")
			},
			[]string{"Umask:\t0027\n", "SigBlk:\t0000000000004000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n", "another name\x00"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := changing.ReplaceAllString(showing(t, "", c.command()), "")
			for _, part := range c.has {
				if !strings.Contains(want, part) {
					t.Errorf("there is no %q in\n%s", part, want)
				}
			}
			if m := ignored.FindStringSubmatch(want); m != nil { // this process may ignore others, too, as below nohup
				const both = 1<<(syscall.SIGPIPE-1) | 1<<(syscall.SIGUSR1-1)
				if set, err := strconv.ParseUint(m[1], 16, 64); err != nil || set&both != both {
					t.Errorf("it ignores the signals %s", m[1])
				}
			}
			if diff := cmp.Diff(want+c.more, changing.ReplaceAllString(showing(t, self, c.command()), "")); diff != "" {
				t.Errorf("(-at once +by way of an entry):\n%s", diff)
			}
		})
	}
	rules := rulesOfProbe()
	rules.Self = self
	if got := try(t, rules, "death")["death"]; got != "SIGKILL" {
		t.Errorf("with the thread that started it, it gets the signal %q", got)
	}
}

// Why a program can't be executed is an error of the start.
func TestSelf_AProgramThatCannotBeExecuted(t *testing.T) {
	t.Parallel()
	forbidden := filepath.Join(t.TempDir(), "program with spaces")
	if err := os.WriteFile(forbidden, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, c := range map[string]struct {
		self string
		want error
	}{
		forbidden:        {"/proc/self/task", fs.ErrPermission},
		forbidden + " x": {"/proc/self/task", fs.ErrNotExist},
		"/bin/sh":        {"/proc/self/none", fs.ErrNotExist},
	} {
		rules := rulesOfProbe()
		rules.Self = c.self
		cmd := exec.Command(path)
		err := startIn(t, rules, cmd)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", path, err, c.want)
		}
		if wrong, ok := errors.AsType[*fs.PathError](err); c.self == "/proc/self/task" && (!ok || wrong.Path != path) {
			t.Errorf("the error names no %s: %v", path, err)
		}
		if cmd.ProcessState == nil {
			t.Error("a process is left")
		}
	}
}
