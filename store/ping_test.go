package store

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// troubled checks that the store's Ping and an operation's error say what is wrong.
func troubled(t *testing.T, s *Store, err, kind error, says string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Errorf("the operation's error is %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		t.Errorf("Ping returns %v", err)
	}
}

// TestPing_TheFileIsAnother: what is written to a file that nobody finds any more is lost.
func TestPing_TheFileIsAnother(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Log("Windows doesn't let others delete or replace open files")
		return
	}
	for name, tt := range map[string]struct {
		change func(t *testing.T, path string)
		says   string
	}{
		"deleted":  {func(t *testing.T, path string) { must(t, os.Remove(path)) }, "was deleted"},
		"no log":   {func(t *testing.T, path string) { must(t, os.Remove(path+walSuffix)) }, "lmcaddy.db-wal was deleted"},
		"replaced": {func(t *testing.T, path string) { must(t, os.Rename(filepath.Join(filepath.Dir(path), "other"), path)) }, "was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := backends[0].at(t)
			must(t, os.WriteFile(filepath.Join(filepath.Dir(at.Path), "other"), nil, 0o600))
			s := open(t, at)
			root := stored(t, s, turn(nil, "root"))
			must(t, s.Ping(t.Context()))
			tt.change(t, at.Path)
			troubled(t, s, s.Put(t.Context(), turn(nil, "lost")), ErrUnavailable, tt.says)
			for range sqliteReaders + 1 { // reading goes on
				_, err := s.Chain(t.Context(), "", root.ID)
				must(t, err)
			}
			if info, err := os.Stat(at.Path); err == nil && info.Size() == 0 && name == "deleted" {
				t.Error("reading has made an empty file")
			}
		})
	}
}

// TestDisplaced_AnEmptiedFile asks no store, whose checkpoint might write the file again.
func TestDisplaced_AnEmptiedFile(t *testing.T) {
	t.Parallel()
	f := &sqliteFile{path: filepath.Join(t.TempDir(), "lmcaddy.db")}
	must(t, os.WriteFile(f.path, []byte("x"), 0o600))
	f.identify()
	must(t, f.displaced())
	must(t, os.Truncate(f.path, 0))
	if err := f.displaced(); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "was emptied") {
		t.Errorf("%v", err)
	}
}

func TestPing_DamagedPages(t *testing.T) {
	t.Parallel()
	at := backends[0].at(t)
	s := open(t, at)
	text := strings.Repeat("long text ", 10_000)
	root := stored(t, s, turn(nil, text))
	must(t, s.Close())
	content, err := os.ReadFile(at.Path)
	must(t, err)
	page := 4096
	for i := 4 * page; i < len(content); i += page { // the pages of the schema stay
		copy(content[i:], bytes.Repeat([]byte{0xff}, page))
	}
	must(t, os.WriteFile(at.Path, content, 0o600))
	s, err = Open(t.Context(), at)
	if err == nil {
		defer func() { _ = s.Close() }()
		_, err = s.Chain(t.Context(), "", root.ID)
		troubled(t, s, err, ErrUnavailable, "damaged")
		return
	}
	if !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
}

// TestPing_KnowsThatWritingFails, and when it works again.
func TestPing_KnowsThatWritingFails(t *testing.T) {
	t.Parallel()
	s := open(t, backends[0].at(t))
	s.health.failureFor = time.Hour
	root := stored(t, s, turn(nil, "root"))
	set := func(pragma string) {
		t.Helper()
		_, err := s.db.(*sqliteFile).conn.ExecContext(t.Context(), pragma)
		must(t, err)
	}
	set("PRAGMA max_page_count = 1") // like a full disk
	troubled(t, s, s.Put(t.Context(), turn(root, strings.Repeat("long", 10_000))), ErrFull, "full")
	set("PRAGMA max_page_count = 1000000")
	if err := s.Ping(t.Context()); !errors.Is(err, ErrFull) {
		t.Errorf("just afterwards, Ping returns %v", err)
	}
	s.health.failureFor = 0
	must(t, s.Ping(t.Context()))
	if n := rows(t, s, "blobs"); n != 0 {
		t.Errorf("%d samples are left", n)
	}
	stored(t, s, turn(root, "afterwards"))
	sound(t, s)
}

// TestOpen_NoEmptyFile: a store whose file was emptied doesn't begin anew, nor does one of which only the log is left.
func TestOpen_NoEmptyFile(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{"": "delete it", walSuffix: "Put the file back"} {
		path := filepath.Join(t.TempDir(), "lmcaddy.db")
		var content []byte
		if name != "" {
			content = []byte("x")
		}
		must(t, os.WriteFile(path+name, content, 0o600))
		if _, err := Open(t.Context(), Options{Path: path}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("with an empty %q: %v", name, err)
		}
	}
}

// TestOpen_MakesAWholeFile: a crash just after it appears leaves no empty file.
func TestOpen_MakesAWholeFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lmcaddy.db")
	must(t, makeDatabase(t.Context(), path))
	left, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if len(left) != 1 || info.Size() == 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("%d files, of %d bytes, %s", len(left), info.Size(), info.Mode())
	}
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer func() { must(t, db.Close()) }()
	var mode int
	must(t, db.QueryRowContext(t.Context(), "PRAGMA auto_vacuum").Scan(&mode))
	if mode != 2 {
		t.Errorf("auto_vacuum is %d", mode)
	}
}
