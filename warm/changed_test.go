//go:build linux || darwin

package warm

import (
	"errors"
	"io/fs"
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
	write := func(content string) fs.FileInfo {
		t.Helper()
		err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, at, at))
		info, missing := os.Stat(path)
		if err = errors.Join(err, missing); err != nil {
			t.Fatal(err)
		}
		return info
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
	seconds, nanoseconds := changedAt(before)
	for { // the system's clock may stand still between two writes
		if s, n := changedAt(write("two")); s != seconds || n != nanoseconds {
			break
		}
	}
	if name() == one {
		t.Error("two models have one print")
	}
}
