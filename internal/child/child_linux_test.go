package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

func TestChild_HasNoBlockedSignals(t *testing.T) {
	t.Parallel()
	c := startChild(t, Options{Path: "grep", Args: []string{"SigBlk", "/proc/self/status"}})
	if out, err := io.ReadAll(c.Stdout); string(out) != "SigBlk:\t0000000000000000\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

// ignores reports whether a process ignores a signal.
func ignores(t *testing.T, pid int, sig syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, mask, _ := strings.Cut(string(status), "\nSigIgn:")
	mask, _, _ = strings.Cut(mask, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return set&(1<<(sig-1)) != 0
}

// The guard does its work after a signal to the whole group, too.
func TestGuard_OutlivesASignalToTheGroup(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(sig) { // as by nohup: the shell couldn't trap it either
				caught := make(chan os.Signal, 1)
				signal.Notify(caught, sig)
				t.Cleanup(func() { signal.Stop(caught) })
			}
			c := startChild(t, shell(`trap "echo asked" `+name+`; echo ready; while :; do sleep 0.05; done`))
			out := bufio.NewReader(c.Stdout)
			if line, err := out.ReadString('\n'); line != "ready\n" {
				t.Fatalf("%q, %v", line, err)
			}
			testkit.Eventually(t, "the guard is ready", func() bool { return ignores(t, c.guard.cmd.Process.Pid, sig) })
			if err := syscall.Kill(-int(c.group), sig); err != nil {
				t.Fatal(err)
			}
			if line, err := out.ReadString('\n'); line != "asked\n" {
				t.Fatalf("%q, %v", line, err)
			}
			if err := c.guard.stdin.Close(); err != nil { // as the end of this process does
				t.Fatal(err)
			}
			await(t, "the guard has ended the group", c.Done())
		})
	}
}

func TestChild_TakesAlongWhatHasLeftTheGroup(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Child){
		"it exits":      func(c *Child) { _ = c.Stdin.Close() },
		"it is killed":  func(c *Child) { _ = syscall.Kill(c.PID, syscall.SIGKILL) },
		"it is stopped": func(c *Child) { c.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, shell(`setsid sh -c 'echo $$; echo ready; exec sleep 600' & cat`))
			pid := grandchild(t, c.Stdout)
			t.Cleanup(func() {
				if !isDead(pid) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			})
			end(c)
			await(t, "it is done", c.Done())
			if !isDead(pid) {
				t.Error("the grandchild is left")
			}
		})
	}
}

// What can't be found holds the pipes open: it has left the group, and removed its mark.
func TestChild_WhoseOutputIsHeldOpen(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Child){
		"it exits":      func(c *Child) { _ = c.Stdin.Close() },
		"it is stopped": func(c *Child) { c.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, shell(`env -u LMCADDY_CHILD setsid sh -c 'echo $$; exec sleep 600' & cat`))
			line, err := bufio.NewReader(c.Stdout).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			holder, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(holder, syscall.SIGKILL) })
			end(c)
			await(t, "it is done", c.Done())
			if _, err := io.ReadAll(c.Stdout); !errors.Is(err, os.ErrClosed) {
				t.Errorf("reading ends with %v", err)
			}
			c.Stop()
			if isDead(holder) {
				t.Error("the other process was ended, so this test has tested nothing")
			}
		})
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// Not parallel, since it counts the descriptors of this process.
func TestChild_LeavesNoDescriptors(t *testing.T) {
	run := func() {
		c, err := Start(shell("cat"))
		if err != nil {
			t.Fatal(err)
		}
		c.Stop()
		if _, err := Start(Options{Path: "/none"}); err == nil {
			t.Error("it started")
		}
	}
	run() // opens what the runtime keeps
	before := openFiles(t)
	for range 5 {
		run()
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d descriptors are open, before it were %d", after, before)
	}
}
