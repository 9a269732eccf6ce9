package venv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakePython creates a program that prints what a probe does, and exits with a status.
func fakePython(t *testing.T, folder, name, version, machine, status string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	script := "#!/bin/sh\nprintf '%s\\n' " + path + " " + strings.ReplaceAll(version, ".", " ") + " " + machine + "\nexit " + status + "\n"
	must(t, os.WriteFile(path, []byte(script), 0o700))
	return path
}

func TestFind_TakesTheFirstThatFits(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	t.Setenv("PATH", "relative"+string(os.PathListSeparator)+first+string(os.PathListSeparator)+filepath.Join(first, "none")+string(os.PathListSeparator)+second)

	_, err := Find(t.Context())
	if none, ok := errors.AsType[*NoPythonError](err); !ok || len(none.Unfit) > 0 {
		t.Errorf("there is none, but the error is %v", err)
	}
	old := fakePython(t, first, "python3", "3.9", "arm64", "0")
	bare := fakePython(t, first, "python3.11", "3.11", "arm64", "1")
	must(t, os.WriteFile(filepath.Join(first, "python3.10"), []byte("#!/bin/sh\necho 'pyenv: python3.10: command not found' >&2\nexit 127\n"), 0o700))
	_, err = Find(t.Context())
	for _, words := range []string{
		"Python 3.10 or later", old + " is version 3.9", bare + " has no modules venv and ensurepip",
		"python3.10 doesn't start: pyenv: python3.10: command not found (exit status 127)", "apt install python3 python3-venv",
	} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("the error doesn't say %q: %v", words, err)
		}
	}
	tooNew := fakePython(t, first, "python3.12", "3.15", "arm64", "0")
	if found, err := Find(t.Context()); err != nil || found.Path != tooNew {
		t.Errorf("found %+v, %v", found, err)
	}
	fits := fakePython(t, second, "python3.13", "3.13", "arm64", "0")
	found, err := Find(t.Context())
	must(t, err)
	if found != (Python{Path: fits, Version: "3.13"}) {
		t.Errorf("found %+v", found)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	cancel(stop)
	if _, err := Find(ctx); !errors.Is(err, stop) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestProbe_OnAMac(t *testing.T) {
	t.Parallel()
	path := fakePython(t, t.TempDir(), "python3", "3.12", "x86_64", "0")
	_, err := probe(t.Context(), path, "darwin")
	if err == nil || err.Error() != "is made for x86_64, not for Apple's processors" {
		t.Errorf("the error is %v", err)
	}
	if _, err := probe(t.Context(), path, "linux"); err != nil {
		t.Error(err)
	}
}

func TestProbe_Versions(t *testing.T) {
	t.Parallel()
	for version, fits := range map[string]bool{"2.7": false, "3.9": false, "3.10": true, "3.20": true, "4.11": false, "x.y": false} {
		_, err := probe(t.Context(), fakePython(t, t.TempDir(), "python3", version, "x", "0"), "linux")
		if (err == nil) != fits {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	newer := fakePython(t, first, "python3.12", "3.12", "x", "0")
	plain := fakePython(t, first, "python3", "3.12", "x", "0")
	fakePython(t, first, "python3.9", "3.9", "x", "0")
	other := fakePython(t, second, "python3", "3.12", "x", "0")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(first, link))
	folders := []string{"relative", filepath.Join(first, "none"), first, link, second}
	if diff := cmp.Diff([]string{plain, newer, other}, candidates(folders, "")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{newer, other, plain}, candidates(folders, plain)); diff != "" {
		t.Error(diff)
	}
}
