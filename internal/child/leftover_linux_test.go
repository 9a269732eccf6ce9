package child

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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
			eventually(t, "the child has ended", func() bool { return isDead(child) })
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
