//go:build unix

package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stubborn ignores what asks it to end, and says when it does so. It starts a grandchild that does the same.
const stubborn = `trap "" TERM INT HUP; (echo $$ ready; while :; do sleep 600; done) & echo $!; while :; do sleep 600; done`

func shell(script string) Options { return Options{Path: "/bin/sh", Args: []string{"-c", script}} }

func startChild(t *testing.T, o Options) *Child {
	t.Helper()
	c, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("waited in vain until %s", what)
	}
}

// isGone reports whether there is no process with this id, not even one that isn't waited for.
func isGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// isDead reports whether a process has ended. One whose parent hasn't waited for it counts as ended.
func isDead(pid int) bool { return isGone(pid) || isZombie(pid) }

// grandchild reads what stubborn writes, until the grandchild runs, and returns the grandchild's process id.
func grandchild(t *testing.T, out io.Reader) (pid int) {
	t.Helper()
	lines := bufio.NewReader(out)
	for isReady := false; pid == 0 || !isReady; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(line, "ready\n") {
			isReady = true
		} else if _, err := fmt.Sscan(line, &pid); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
	}
	return pid
}

func TestChild_TalksAndEndsWithItsInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := shell(`pwd; echo "$A $LMCADDY_CHILD"; cat`)
	o.Dir, o.Env = dir, []string{"A=b", "PATH=" + os.Getenv("PATH"), plain.Variable + "=of another"}
	c := startChild(t, o)
	if _, err := io.WriteString(c.Stdin, "said"); err != nil {
		t.Fatal(err)
	}
	if err := c.Stdin.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(c.Stdout)
	_, run, _ := strings.Cut(c.mark.Env(), "=")
	if diff := cmp.Diff(dir+"\nb "+run+"\nsaid", string(out)); diff != "" || err != nil {
		t.Errorf("error %v; output (-want +got):\n%s", err, diff)
	}
	await(t, "it is done", c.Done())
	if c.Err() != nil {
		t.Errorf("error %v", c.Err())
	}
}

func TestChild_ThatExits(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"at once":                         `echo last; exit 3`,
		"leaving a process in the group":  `sleep 600 & echo last; exit 3`,
		"leaving one that ignores SIGHUP": `trap "" HUP TERM; sleep 600 & echo last; exit 3`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, shell(script))
			out, err := io.ReadAll(c.Stdout)
			if string(out) != "last\n" || err != nil {
				t.Errorf("output %q, %v", out, err)
			}
			await(t, "it is done", c.Done())
			var exit *exec.ExitError
			if !errors.As(c.Err(), &exit) || exit.ExitCode() != 3 {
				t.Errorf("error %v", c.Err())
			}
			if !isGone(c.PID) || !isGone(c.guard.cmd.Process.Pid) {
				t.Error("it is done, but a process is left")
			}
			if _, err := c.Stdin.Write([]byte("x")); err == nil {
				t.Error("the input is open")
			}
			c.Stop()
			if _, err := c.Stdout.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
				t.Errorf("the output isn't closed: %v", err)
			}
		})
	}
}

func TestStop_OfAChildThatIgnoresWhatAsksItToEnd(t *testing.T) {
	t.Parallel()
	journal := t.TempDir()
	o := shell(stubborn)
	o.Journal = journal
	c := startChild(t, o)
	pid := grandchild(t, c.Stdout)
	if files, _ := filepath.Glob(filepath.Join(journal, "*")); len(files) != 1 {
		t.Errorf("in the journal: %v", files)
	}
	if c.Err() != nil {
		t.Errorf("error %v before it has ended", c.Err())
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			c.Stop()
			if !isGone(c.PID) || !isGone(c.guard.cmd.Process.Pid) || !isDead(pid) {
				t.Error("Stop has returned, but a process is left")
			}
		})
	}
	all.Wait()
	c.Stop()
	if files, _ := filepath.Glob(filepath.Join(journal, "*")); len(files) != 0 {
		t.Errorf("left in the journal: %v", files)
	}
	var exit *exec.ExitError
	if !errors.As(c.Err(), &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("error %v", c.Err())
	}
}

// A child may end itself as soon as it gets SIGTERM, although its input has ended before.
func TestStop_SendsSIGTERM(t *testing.T) {
	t.Parallel()
	c := startChild(t, shell(`trap "echo asked; exit 7" TERM; echo ready; while :; do sleep 0.05; done`))
	out := bufio.NewReader(c.Stdout)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	said := make(chan string)
	go func() {
		line, _ := out.ReadString('\n')
		said <- line
	}()
	c.Stop()
	var exit *exec.ExitError
	if line := <-said; line != "asked\n" || !errors.As(c.Err(), &exit) || exit.ExitCode() != 7 {
		t.Errorf("%q, error %v", line, c.Err())
	}
}

// A reader that waits and a writer that is stuck are released by Stop.
func TestStop_ReleasesReadersAndWriters(t *testing.T) {
	t.Parallel()
	c := startChild(t, shell(`trap "" TERM; while :; do sleep 600; done`))
	var all sync.WaitGroup
	all.Go(func() { _, _ = io.Copy(io.Discard, c.Stdout) })
	all.Go(func() {
		for {
			if _, err := c.Stdin.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	c.Stop()
	all.Wait()
}

func TestStart_Errors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		options Options
		names   string
		is      error
	}{
		"a name that isn't in PATH":    {Options{Path: "no-such-command"}, "no-such-command", exec.ErrNotFound},
		"no such file":                 {Options{Path: filepath.Join(dir, "none")}, filepath.Join(dir, "none"), fs.ErrNotExist},
		"a file that isn't executable": {Options{Path: file}, file, fs.ErrPermission},
		"a directory":                  {Options{Path: dir}, dir, fs.ErrPermission},
		"in no directory":              {Options{Path: "/bin/sh", Dir: filepath.Join(dir, "none")}, filepath.Join(dir, "none"), fs.ErrNotExist},
		"in a file":                    {Options{Path: "/bin/sh", Dir: file}, file, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.options.Args, c.options.Env, c.options.Journal = []string{"secret"}, []string{"KEY=secret"}, filepath.Join(dir, "journal")
			got, err := Start(c.options)
			if err == nil {
				got.Stop()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.options.Path) || !strings.Contains(err.Error(), c.names) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "fork/exec") {
				t.Errorf("error %v", err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v, want %v", err, c.is)
			}
			if files, _ := filepath.Glob(filepath.Join(c.options.Journal, "*")); len(files) != 0 {
				t.Errorf("in the journal: %v", files)
			}
		})
	}
}

// Not parallel, since it changes the directory: a relative one in PATH isn't used.
func TestStart_LooksInTheChildsPATH(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, at := range []string{"bin/tool", "relative/tool", "tool"} {
		path := filepath.Join(dir, at)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+at+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"tool": "bin/tool", "./tool": "tool", "bin/tool": "bin/tool"} {
		c := startChild(t, Options{Path: path, Dir: dir, Env: []string{"PATH=relative:" + dir + "/none:" + dir + "/bin:" + os.Getenv("PATH")}})
		if out, err := io.ReadAll(c.Stdout); string(out) != want+"\n" || err != nil {
			t.Errorf("%s: output %q, %v", path, out, err)
		}
	}
}

func TestChild_LinesOfStandardError(t *testing.T) {
	t.Parallel()
	var lines []string
	o := shell(fmt.Sprintf(`{ echo one; echo; head -c %d /dev/zero | tr '\0' x; echo; printf rest; } >&2`, MaxLine+10))
	o.Line = func(line string) { lines = append(lines, line) }
	c := startChild(t, o)
	await(t, "it is done", c.Done())
	if diff := cmp.Diff([]string{"one", strings.Repeat("x", MaxLine), "rest"}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestChild_ManyAtOnce(t *testing.T) {
	t.Parallel()
	journal := t.TempDir()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			o := shell("cat")
			o.Journal = journal
			c, err := Start(o)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Stop()
			want := fmt.Sprintln("child", i)
			if _, err := io.WriteString(c.Stdin, want); err != nil {
				t.Error(err)
			}
			if line, err := bufio.NewReader(c.Stdout).ReadString('\n'); line != want {
				t.Errorf("%q, %v, want %q", line, err, want)
			}
			c.Stop()
			if !isGone(c.PID) || !isGone(c.guard.cmd.Process.Pid) || c.Err() != nil {
				t.Errorf("a process is left, or error %v", c.Err())
			}
		})
	}
	all.Wait()
	if files, _ := filepath.Glob(filepath.Join(journal, "*")); len(files) != 0 {
		t.Errorf("left in the journal: %v", files)
	}
}

// Without a shell there is no guard, but a child all the same.
func TestChild_WithoutAGuard(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	o := shell(stubborn)
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	c, err := startGuarded(o, filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	if !strings.Contains(log.String(), "no guard") {
		t.Errorf("log %q", &log)
	}
	pid := grandchild(t, c.Stdout)
	c.Stop()
	if !isGone(c.PID) || !isDead(pid) {
		t.Error("a process is left")
	}
}
