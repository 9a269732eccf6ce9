package catalog

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCatalog_TellsChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole, err := os.ReadFile("../testdata/models/lmcaddy/tinychat/tinychat-f16.gguf")
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, content []byte) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	c := New(slog.New(slog.DiscardHandler), FormatGGUF)
	c.SetRoots([]string{dir})
	c.SetChanged(func(models []Model) {
		for _, m := range models {
			told = append(told, m.Key)
		}
	})
	put("a/b/b.gguf", whole)
	for _, step := range []struct {
		what string
		do   func()
		want []string
	}{
		{"the first scan", func() {}, nil},
		{"nothing", func() {}, nil},
		{"one more", func() { put("a/c/c.gguf", whole) }, []string{"a/c"}},
		{"one changed, one more before it", func() { put("a/b/b.gguf", whole[:len(whole)/2]); put("a/a/a.gguf", whole) }, []string{"a/a", "a/b"}},
		{"two deleted", func() { _ = os.RemoveAll(filepath.Join(dir, "a", "b")); _ = os.RemoveAll(filepath.Join(dir, "a", "c")) }, []string{"a/b", "a/c"}},
		{"all deleted", func() { _ = os.RemoveAll(filepath.Join(dir, "a")) }, []string{"a/a"}},
	} {
		told = nil
		step.do()
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, told); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
	}
}
