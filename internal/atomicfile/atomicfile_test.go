package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// only fails unless the folder holds nothing but a file of this content.
func only(t *testing.T, path, content string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("%d files are in the folder, want 1", len(entries))
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != content {
		t.Errorf("content %q, error %v", got, err)
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 250)) // a longer temporary name wouldn't fit
	for _, content := range []string{"first, and longer", "second", ""} {
		if err := WriteFile(path, 0o600, text(content)); err != nil {
			t.Fatal(err)
		}
		only(t, path, content)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
}

func TestWriteFile_LeavesTheOldFileOnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := WriteFile(path, 0o600, text("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := WriteFile(path, 0o600, func(w io.Writer) error { return errors.Join(text("new")(w), broken) })
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	only(t, path, "old")
}

func TestWriteFile_RemovesItsTemporaryFileIfTheRenameFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder")
	if err := os.MkdirAll(filepath.Join(path, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, 0o600, text("new")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v are left, error %v", entries, err)
	}
}

func TestWrite_StaysBelowItsRoot(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := Write(root, "../file", 0o600, text("x")); err == nil {
		t.Error("a file was written outside of the root")
	}
}
