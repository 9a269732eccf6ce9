//go:build unix

package child

import (
	"bufio"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// parentVariable makes the test binary a process that starts a child, and that the test kills: the child's journal.
const (
	parentVariable = "LMCADDY_TEST_PARENT"
	scriptVariable = "LMCADDY_TEST_SCRIPT"
	shellVariable  = "LMCADDY_TEST_GUARD"
)

// beParentIfTold starts a child, and says the process ids of the guard, of the child, and of the grandchild that the child names.
func beParentIfTold() {
	journal := os.Getenv(parentVariable)
	if journal == "" {
		return
	}
	o := shell(os.Getenv(scriptVariable))
	o.Journal = journal
	c, err := startGuarded(o, os.Getenv(shellVariable))
	if err != nil {
		panic(err)
	}
	guard := 0
	if c.guard != nil {
		guard = c.guard.cmd.Process.Pid
	}
	fmt.Println(guard, c.PID)
	_, _ = bufio.NewReader(c.Stdout).WriteTo(os.Stdout)
	select {}
}

// killedParent runs a process that starts a child with a script like stubborn, kills it, and returns the process ids of what it
// has started.
func killedParent(t *testing.T, journal, script, shell string) (guard, child, pid int) {
	t.Helper()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+journal, scriptVariable+"="+script, shellVariable+"="+shell)
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = parent.Process.Kill()
		_ = parent.Wait()
	})
	lines := bufio.NewReader(out)
	if _, err := fmt.Fscanln(lines, &guard, &child); err != nil {
		t.Fatal(err)
	}
	pid = grandchild(t, lines)
	t.Cleanup(func() {
		for _, left := range []int{guard, child, pid} {
			if left != 0 && !isDead(left) {
				_ = syscall.Kill(left, syscall.SIGKILL)
			}
		}
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	return guard, child, pid
}

func TestGuard_OfAKilledParentEndsTheGroup(t *testing.T) {
	t.Parallel()
	guard, child, pid := killedParent(t, t.TempDir(), stubborn, guardShell)
	for what, pid := range map[string]int{"guard": guard, "child": child, "grandchild": pid} {
		testkit.Eventually(t, "the "+what+" has ended", func() bool { return isDead(pid) })
	}
}

// startByHand starts a stubborn process, in the group of a guard, that nothing here ends.
func startByHand(t *testing.T) (g *Guard, child, pid int) {
	t.Helper()
	g, err := newGuard(guardShell, plain.Mark("", "by hand"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", stubborn)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.cmd.Process.Pid}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		g.End()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		Group(g.cmd.Process.Pid).Kill()
		_ = cmd.Wait()
		g.End()
	})
	return g, cmd.Process.Pid, grandchild(t, out)
}

// A record names the child, which isn't the leader of its group.
func TestEndLeftovers_EndsTheGroupOfWhatIsRecordedAndNoStranger(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	log := slog.New(slog.DiscardHandler)
	guard, leftover, pid := startByHand(t)
	stranger := startChild(t, shell("cat"))
	plain.Mark(journal, "crashed").Record(leftover, log)
	created := plain.Mark(journal, "stranger").Record(stranger.PID, log).Created
	for name, content := range map[string]string{
		"stranger.json": fmt.Sprintf(`{"pid":%d,"created":%d}`, stranger.PID, created-1), // somebody else had the number before
		"half.json":     `{"pid":`, "empty.json": "", "self.json": `{"pid":0}`, "init.json": `{"pid":1,"created":1}`, "none.json": `{"pid":-7,"created":0}`,
	} {
		if err := os.WriteFile(filepath.Join(journal, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	EndLeftovers(t.Context(), journal, log)
	if !isDead(leftover) {
		t.Error("the child that was left behind is still there")
	}
	testkit.Eventually(t, "its group has ended as well", func() bool { return isDead(pid) && isDead(guard.cmd.Process.Pid) })
	if isDead(stranger.PID) {
		t.Error("a stranger was ended")
	}
	if left, _ := filepath.Glob(filepath.Join(journal, "*")); len(left) > 0 {
		t.Errorf("left in the journal: %v", left)
	}
}

func TestEndLeftovers_OfNothingDoesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	EndLeftovers(t.Context(), filepath.Join(dir, "none"), slog.New(slog.DiscardHandler))
	EndLeftovers(t.Context(), "", slog.New(slog.DiscardHandler))
	if _, err := os.Stat("precious.json"); err != nil {
		t.Error(err)
	}
}
