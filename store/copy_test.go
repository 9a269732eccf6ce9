package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopy copies a database while turns are put into it: the copy has every turn that was stored before, and no half of one.
func TestCopy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b%c#?.db")
	s := open(t, Options{Path: path})
	first := stored(t, s, turn(nil, "one"))
	last := stored(t, s, turn(first, "two"))
	deleted := stored(t, s, turn(nil, "a secret that was deleted"))
	must(t, s.Delete(t.Context(), "", deleted.ID))
	more := make(chan error)
	go func() {
		var err error
		for range 20 {
			err = errors.Join(err, s.Put(t.Context(), turn(nil, "meanwhile")))
		}
		more <- err
	}()
	into := filepath.Join(t.TempDir(), "copy.db")
	schema, err := Copy(t.Context(), path, into)
	must(t, err)
	must(t, <-more)
	if schema != Schema() {
		t.Errorf("schema %d, want %d", schema, Schema())
	}
	content, err := os.ReadFile(into)
	must(t, err)
	if bytes.Contains(content, []byte("a secret")) {
		t.Error("the copy has what was deleted")
	}
	copied := open(t, Options{Path: into})
	if got := strings.Join(texts(t, copied, "", last.ID), ","); got != "one,two" {
		t.Errorf("the copy's conversation is %q", got)
	}
	sound(t, copied)
}

func TestCopy_OfNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	if _, err := Copy(t.Context(), path, path+".copy"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a database was made")
	}
}

func TestSchemaOf_Damaged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	must(t, os.WriteFile(path, []byte(strings.Repeat("no database", 1000)), 0o600))
	if _, err := SchemaOf(t.Context(), path); err == nil {
		t.Error("there is no error")
	}
}
