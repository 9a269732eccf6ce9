package child

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// What leaves the group of a killed server's child is ended when the next server starts, by its mark.
func TestEndLeftovers_EndsWhatHasLeftTheGroup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, shell string }{
		"in a session of its own": {`trap "" TERM INT HUP; setsid sh -c 'echo $$; echo ready; exec sleep 600' & sleep 600`, guardShell},
		"without a guard":         {stubborn, "/none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := filepath.Join(t.TempDir(), "journal")
			_, child, pid := killedParent(t, journal, c.script, c.shell)
			testkit.Eventually(t, "the child has ended", func() bool { return isDead(child) })
			stranger := startChild(t, shell("cat")) // of no journal
			if isDead(pid) {
				t.Fatal("the grandchild hasn't outlived its parents")
			}
			if files, _ := filepath.Glob(filepath.Join(journal, "*")); len(files) != 1 {
				t.Errorf("in the journal: %v", files)
			}
			EndLeftovers(t.Context(), journal, slog.New(slog.DiscardHandler))
			if !isDead(pid) {
				t.Error("the grandchild is left")
			}
			if isDead(stranger.PID) {
				t.Error("a stranger was ended")
			}
			if files, _ := filepath.Glob(filepath.Join(journal, "*")); len(files) != 0 {
				t.Errorf("left in the journal: %v", files)
			}
		})
	}
}

// A process whose memory the system still frees has no environment any more, and hasn't ended.
func TestEndLeftovers_WaitsForWhatIsExiting(t *testing.T) {
	t.Parallel()
	journal := t.TempDir()
	large := exec.Command("dd", "if=/dev/zero", "bs=512M", "count=1")
	large.Env = append(os.Environ(), plain.Mark(journal, "large").Env())
	out, err := large.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := large.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = large.Wait() })
	_, err = io.ReadFull(out, make([]byte, 1)) // then dd has filled its memory, and waits for a reader
	if killed := large.Process.Kill(); err != nil || killed != nil {
		t.Fatal(err, killed)
	}
	EndLeftovers(t.Context(), journal, slog.New(slog.DiscardHandler))
	if !isDead(large.Process.Pid) {
		t.Error("a process is exiting yet")
	}
}

// A process that executes another program is found by its environment at any moment, and one that has none isn't waited for.
func TestEnviron(t *testing.T) {
	t.Parallel()
	processOf := func(cmd *exec.Cmd) string {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid))
	}
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte(`exec /bin/sh "$0"`), 0o600); err != nil {
		t.Fatal(err)
	}
	again := exec.Command("/bin/sh", script)
	again.Env = []string{"A=b"}
	process := processOf(again)
	for range 2000 {
		if got := environ(process); !hasVariable(got, []byte("A=b"), false) {
			t.Fatalf("the environment is %q", got)
		}
	}
	bare := exec.Command("/bin/sleep", "600")
	bare.Env = []string{}
	process = processOf(bare)
	testkit.Eventually(t, "it is executed", func() bool {
		exe, err := os.Readlink(filepath.Join(process, "exe"))
		return err == nil && filepath.Base(exe) != filepath.Base(os.Args[0])
	})
	testkit.Eventually(t, "it doesn't change any more", func() bool { return !isChanging(process) })
	if got := environ(process); len(got) > 0 {
		t.Errorf("the environment is %q", got)
	}
	if isChanging("/proc/none") {
		t.Error("nothing is waited for")
	}
}
