package process

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func launchByHand(t *testing.T, fake *fakeengine.Engine) int {
	t.Helper()
	cmd := exec.Command(fake.Path, "-m", "/models/m.gguf", "--port", "0")
	cmd.SysProcAttr = withoutLeash(child.OwnGroup())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	fake.Wait(t, fakeengine.Of(cmd.Process.Pid, fakeengine.Ready))
	return cmd.Process.Pid
}

func TestEndLeftovers_EndsWhatIsInTheJournalAndNoStranger(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, nil)
	host := NewHost(Options{Journal: filepath.Join(t.TempDir(), "engines")})
	host.id = "crashed"
	log := slog.New(slog.DiscardHandler)
	leftover, stranger := launchByHand(t, fake), launchByHand(t, fake)
	host.mark(1).Record(leftover, log)
	created := host.mark(2).Record(stranger, log).Created
	for name, content := range map[string]string{
		"crashed.2.json": fmt.Sprintf(`{"pid":%d,"created":%d}`, stranger, created-1), // somebody else had the number before
		"half.json":      `{"pid":`, "empty.json": "", "self.json": `{"pid":0}`, "init.json": `{"pid":1,"created":1}`, "none.json": `{"pid":-7,"created":0}`,
	} {
		if err := os.WriteFile(filepath.Join(host.Journal, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	EndLeftovers(t.Context(), host.Journal, log)
	if fakeengine.Alive(leftover) {
		t.Error("the engine that was left behind is still there")
	}
	if !fakeengine.Alive(stranger) {
		t.Error("a stranger was ended")
	}
	if left, _ := filepath.Glob(filepath.Join(host.Journal, "*")); len(left) > 0 {
		t.Errorf("left in the journal: %v", left)
	}
}

func TestEndLeftovers_OfNothingDoesNothing(t *testing.T) {
	t.Parallel()
	EndLeftovers(t.Context(), filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler))
}

func TestEndLeftovers_RemovesFolders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base string
		mode os.FileMode
		gone bool
	}{
		"a folder that we made":   {shortPrefix + "1", 0o700, true},
		"one with another's name": {"precious", 0o700, false},
		"one that others enter":   {shortPrefix + "1", 0o755, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal, short := filepath.Join(t.TempDir(), "engines"), filepath.Join(t.TempDir(), c.base)
			for _, dir := range []string{filepath.Join(journal, "abcdefgh"), filepath.Join(short, "abcdefgh")} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, socketName), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(short, c.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(short, filepath.Join(journal, shortLink)); err != nil {
				t.Fatal(err)
			}
			EndLeftovers(t.Context(), journal, slog.New(slog.DiscardHandler))
			_, err := os.Stat(short)
			if left, _ := os.ReadDir(journal); len(left) > 0 || errors.Is(err, os.ErrNotExist) != c.gone {
				t.Errorf("left in the journal: %v; the short folder: %v", left, err)
			}
		})
	}
}
