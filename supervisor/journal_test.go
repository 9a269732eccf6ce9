package supervisor

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// launchByHand starts an engine that no supervisor knows of, in a group of its own.

// Where nothing can be written down, the engine runs all the same.
func TestJournal_ThatCannotBeWrittenIsNoReasonNotToRun(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fake := fakeengine.Install(t, nil)
	engine := LlamaServer(func() (string, error) { return fake.Path, nil })
	s := New(map[string]process.Program{"llama_server": engine}, Options{Options: process.Options{Journal: filepath.Join(file, "engines")}}, slog.New(slog.DiscardHandler))
	defer s.Close()
	works(t, s)
}
