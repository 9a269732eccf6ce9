package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpen_KeepsWhatIsThere(t *testing.T) {
	eachPlace(t, func(t *testing.T, at Options) {
		first := open(t, at)
		root := stored(t, first, turn(nil, "root"))
		must(t, first.Close())
		again := open(t, at)
		if diff := cmp.Diff([]string{"root"}, texts(t, again, "", root.ID)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestOpen_AtTheSameTime opens a new store several times at once: one call migrates it.
func TestOpen_AtTheSameTime(t *testing.T) {
	eachPlace(t, func(t *testing.T, at Options) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				s, err := Open(t.Context(), at)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Put(t.Context(), turn(nil, "x")); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		s := open(t, at)
		if n := rows(t, s, "turns"); n != 8 {
			t.Errorf("%d turns", n)
		}
		if n := rows(t, s, "lmcaddy_schema"); n != known(t) {
			t.Errorf("%d migrations were done", n)
		}
		sound(t, s)
	})
}

func TestOpen_RefusesANewerSchema(t *testing.T) {
	eachPlace(t, func(t *testing.T, at Options) {
		s := open(t, at)
		must(t, s.write(t.Context(), 0, func(t *tx) error {
			_, err := t.exec("INSERT INTO lmcaddy_schema (version, applied) VALUES (99, 0)")
			return err
		}))
		name := s.db.name()
		must(t, s.Close())
		_, err := Open(t.Context(), at)
		newer, ok := errors.AsType[*Newer](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		if diff := cmp.Diff(&Newer{Store: name, Version: 99, Known: known(t)}, newer); diff != "" {
			t.Error(diff)
		}
		for _, part := range []string{"version 99", fmt.Sprint("up to ", known(t)), "newer", name} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q lacks %q", err, part)
			}
		}
	})
}

// known returns the number of migrations.
func known(t *testing.T) int {
	t.Helper()
	all, err := scripts(migrations)
	must(t, err)
	return len(all)
}

// TestMigrate_IsWholeOrNot: if the second of two migrations fails, the first isn't applied either.
func TestMigrate_IsWholeOrNot(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		released, err := scripts(migrations)
		must(t, err)
		good := append(released, "CREATE TABLE extra (id {id} PRIMARY KEY); -- with a comment; and a semicolon\nINSERT INTO extra (id) VALUES ('x')")
		if err := migrateTo(t.Context(), s.db, append(good, "CREATE TABLE (")); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprint("schema version ", len(good)+1)) {
			t.Errorf("a bad migration gives %v", err)
		}
		if n := rows(t, s, "lmcaddy_schema"); n != known(t) {
			t.Errorf("%d migrations are recorded", n)
		}
		must(t, migrateTo(t.Context(), s.db, good))
		must(t, migrateTo(t.Context(), s.db, good)) // nothing is left to do
		if n := rows(t, s, "extra"); n != 1 {
			t.Errorf("the migration ran %d times", n)
		}
		if err := migrate(t.Context(), s.db); !errors.As(err, new(*Newer)) {
			t.Errorf("the older program gets %v", err)
		}
	})
}

func TestOpen_File(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new folder", "what? 100%#1.db")
	s := open(t, Options{Path: path})
	stored(t, s, turn(nil, "x"))
	for _, c := range []struct {
		suffix string
		mode   os.FileMode
	}{{"", 0o600}, {"-wal", 0o600}, {"-shm", 0o600}} {
		info, err := os.Stat(path + c.suffix)
		must(t, err)
		if runtime.GOOS != "windows" && info.Mode().Perm() != c.mode {
			t.Errorf("%s has mode %s", info.Name(), info.Mode())
		}
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2"} {
		must(t, s.write(t.Context(), 0, func(tx *tx) error {
			var got string
			_, err := tx.row("PRAGMA "+pragma, nil, &got)
			if got != want {
				t.Errorf("%s is %s", pragma, got)
			}
			return err
		}))
	}
	must(t, s.Close())
	if left, _ := filepath.Glob(path + "-*"); left != nil {
		t.Errorf("Close has left %q", left)
	}
}

// TestOpen_SaysWhatToDo opens stores that can't be opened.
func TestOpen_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	file := func(t *testing.T, content []byte) Options {
		path := filepath.Join(t.TempDir(), "lmcaddy.db")
		must(t, os.WriteFile(path, content, 0o600))
		return Options{Path: path}
	}
	for name, c := range map[string]struct {
		at   func(*testing.T) Options
		want []string
	}{
		"neither":      {func(*testing.T) Options { return Options{} }, []string{"give one of them"}},
		"both":         {func(*testing.T) Options { return Options{Path: "x", URL: "y"} }, []string{"give one of them"}},
		"another file": {func(t *testing.T) Options { return file(t, []byte(strings.Repeat("not a database", 1000))) }, []string{"lmcaddy.db", "Move it away"}},
		"a cut one": {func(t *testing.T) Options {
			whole := Options{Path: filepath.Join(t.TempDir(), "whole.db")}
			s := open(t, whole)
			stored(t, s, turn(nil, strings.Repeat("long", 10_000)))
			must(t, s.Close())
			content, err := os.ReadFile(whole.Path)
			must(t, err)
			return file(t, content[:len(content)/2])
		}, []string{"lmcaddy.db", "damaged", "backup"}},
		"a folder":     {func(t *testing.T) Options { return Options{Path: t.TempDir()} }, []string{"not a file", "may write"}},
		"below a file": {func(t *testing.T) Options { return Options{Path: filepath.Join(file(t, nil).Path, "x.db")} }, []string{"may write"}},
		"bad URL":      {func(*testing.T) Options { return Options{URL: "postgres://:secret@[/x"} }, []string{"looks like postgres://"}},
		"no server": {
			func(t *testing.T) Options { return Options{URL: "postgres://u:secret@/x?host=" + t.TempDir()} },
			[]string{"server runs", "/x"},
		},
		"no database": {func(t *testing.T) Options {
			return Options{URL: strings.Replace(server.schema(t), "/postgres?", "/nothere?", 1)}
		}, []string{"nothere", "createdb"}},
		"no schema": {func(t *testing.T) Options {
			server.schema(t)
			return Options{URL: server.url("nothere")}
		}, []string{"GRANT CREATE"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), c.at(t))
			if err == nil {
				must(t, s.Close())
				t.Fatal("it was opened")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%q tells the password", err)
			}
		})
	}
}

func TestSQLite_ReadOnly(t *testing.T) {
	t.Parallel()
	at := backends[0].at(t)
	must(t, open(t, at).Close())
	db := &sqliteFile{path: at.Path}
	err := db.explain(db.connect(t.Context(), "mode=ro"))
	if err == nil {
		err = migrate(t.Context(), db)
	}
	must(t, db.close())
	if err == nil || !strings.Contains(err.Error(), "must be able to write the file") {
		t.Errorf("got %v", err)
	}
}
