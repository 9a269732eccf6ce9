package backup

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed returns the names of what is in a folder.
func listed(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func says(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "a folder [1]")
	path := filepath.Join(folder, "x.tar.zst")
	left := filepath.Join(folder, unfinishedPrefix+"0123"+unfinishedSuffix)
	put(t, left, "of a backup that was killed")
	put(t, filepath.Join(folder, "else.tmp"), "")
	if err := Create(path, says("whole")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "whole" {
		t.Errorf("%q, error %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if diff := cmp.Diff([]string{"else.tmp", "x.tar.zst"}, listed(t, folder)); diff != "" {
		t.Error(diff)
	}
}

// TestCreate_ReplacesNothing has a file made before and during the writing, and one where the disk is full.
func TestCreate_ReplacesNothing(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for name, tt := range map[string]struct {
		before bool
		during error
		want   []string
	}{
		"before":      {true, nil, []string{"x"}},
		"meanwhile":   {false, nil, []string{"x"}},
		"a full disk": {false, full, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			path := filepath.Join(folder, "x")
			if tt.before {
				put(t, path, "first")
			}
			err := Create(path, func(w io.Writer) error {
				if tt.during == nil {
					put(t, path, "first")
				}
				return errors.Join(says("second")(w), tt.during)
			})
			if isThere := errors.As(err, new(*Exists)); isThere != (tt.during == nil) || tt.during != nil && !errors.Is(err, full) {
				t.Errorf("error %v", err)
			}
			if text, _ := os.ReadFile(path); tt.during == nil && string(text) != "first" {
				t.Errorf("it became %q", text)
			}
			if diff := cmp.Diff(tt.want, listed(t, folder)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCreate_LeavesOthersAlone has two backups written to one folder at a time.
func TestCreate_LeavesOthersAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	err := Create(filepath.Join(folder, "outer"), func(w io.Writer) error {
		return errors.Join(Create(filepath.Join(folder, "inner"), says("x")), says("y")(w))
	})
	if diff := cmp.Diff([]string{"inner", "outer"}, listed(t, folder)); err != nil || diff != "" {
		t.Errorf("error %v\n%s", err, diff)
	}
}

func TestBegin(t *testing.T) {
	t.Parallel()
	dir := newHome(t, full)
	archive := archived(t, dir, false)
	var works []*Work
	for range 2 {
		w, err := Begin(dir)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(w.Folder, "lmcaddy.db"), "a copy")
		works = append(works, w)
	}
	var busy *BusyError
	if _, err := Restore(t.Context(), dir, bytes.NewReader(archive), replacing); !errors.As(err, &busy) || busy.isRestored {
		t.Errorf("error %v", err)
	}
	if err := Finish(dir); err != nil { // of a server that begins
		t.Fatal(err)
	}
	if _, err := os.Stat(works[1].Folder); err != nil {
		t.Errorf("the copy of a running backup is gone: %v", err)
	}
	if err := works[0].End(); err != nil {
		t.Fatal(err)
	}
	_ = works[1].lock.Close() // as the system does when a backup is killed
	if err := Finish(dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"backup.lock", "lock"}, listed(t, dir.Run())); diff != "" {
		t.Error(diff)
	}
	alone, err := lockAlone(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer alone()
	if _, err := Begin(dir); !errors.As(err, &busy) || !busy.isRestored {
		t.Errorf("error %v", err)
	}
}
