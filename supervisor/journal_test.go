package supervisor

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
)

// launchByHand starts an engine that no supervisor knows of, in a group of its own.
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
	options := Options{Journal: filepath.Join(t.TempDir(), "engines"), id: "crashed"}
	log := slog.New(slog.DiscardHandler)
	leftover, stranger := launchByHand(t, fake), launchByHand(t, fake)
	options.mark(1).Record(leftover, log)
	created := options.mark(2).Record(stranger, log).Created
	for name, content := range map[string]string{
		"crashed.2.json": fmt.Sprintf(`{"pid":%d,"created":%d}`, stranger, created-1), // somebody else had the number before
		"half.json":      `{"pid":`, "empty.json": "", "self.json": `{"pid":0}`, "init.json": `{"pid":1,"created":1}`, "none.json": `{"pid":-7,"created":0}`,
	} {
		if err := os.WriteFile(filepath.Join(options.Journal, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	EndLeftovers(t.Context(), options.Journal, log)
	if fakeengine.Alive(leftover) {
		t.Error("the engine that was left behind is still there")
	}
	if !fakeengine.Alive(stranger) {
		t.Error("a stranger was ended")
	}
	if left, _ := filepath.Glob(filepath.Join(options.Journal, "*")); len(left) > 0 {
		t.Errorf("left in the journal: %v", left)
	}
}

func TestEndLeftovers_OfNothingDoesNothing(t *testing.T) {
	t.Parallel()
	EndLeftovers(t.Context(), filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler))
}

// Where nothing can be written down, the engine runs all the same.
func TestJournal_ThatCannotBeWrittenIsNoReasonNotToRun(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fake := fakeengine.Install(t, nil)
	engine := LlamaServer(func() (string, error) { return fake.Path, nil })
	s := New(map[string]Process{"llama_server": engine}, Options{Journal: filepath.Join(file, "engines")}, slog.New(slog.DiscardHandler))
	defer s.Close()
	works(t, s)
}
