//go:build linux || darwin

package warm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPrint_IsReadAgainWhateverItsTimes: a file that was written in place is another one, also if its size and its time of modification
// are as they were.
func TestPrint_IsReadAgainWhateverItsTimes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.gguf")
	d := digests{of: map[string]digest{}}
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	write := func(content string) (changed int64) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
		return changedAt(path)
	}
	name := func() string {
		t.Helper()
		name, err := (&Print{Files: []string{path}}).name(&d)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	before := write("one")
	one := name()
	if name() != one {
		t.Fatal("the same file has two prints")
	}
	for write("two") == before { // the system's clock may stand still between two writes
	}
	if name() == one {
		t.Error("two models have one print")
	}
}
