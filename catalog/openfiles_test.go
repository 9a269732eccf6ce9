//go:build unix

package catalog

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/internal/openfiles/openfilestest"
)

// TestCatalog_WithoutFileDescriptors: no model disappears or becomes broken because it can't be read now.
func TestCatalog_WithoutFileDescriptors(t *testing.T) {
	openfilestest.Run(t, func(t *testing.T, without func(func())) {
		c, root := catalogOf(t, files{"p/a/x.gguf": f32, "p/b/y.gguf": f32})
		without(func() {
			if all, err := c.Models(t.Context()); !openfiles.AreExhausted(err) {
				t.Errorf("nothing is known yet, but there are %v, %v", all, err)
			}
			if _, err := c.Lookup(t.Context(), "a"); !openfiles.AreExhausted(err) {
				t.Errorf("Lookup gives %v", err)
			}
		})
		want := map[string]string{"p/a": "p/a/x.gguf", "p/b": "p/b/y.gguf"}
		if diff := cmp.Diff(want, paths(t, c, root)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		write(t, root, "p/c/z.gguf", f32)
		stale := func() { // as if time had passed
			old := *c.last.Load()
			old.at = time.Time{}
			c.last.Store(&old)
		}
		stale()
		without(func() {
			if diff := cmp.Diff(want, paths(t, c, root)); diff != "" {
				t.Errorf("without file descriptors (-want +got):\n%s", diff)
			}
			if m, err := c.Lookup(t.Context(), "p/b"); err != nil || m.Err != nil {
				t.Errorf("Lookup gives %v, %v", m.Err, err)
			}
			if err := c.Refresh(t.Context()); !openfiles.AreExhausted(err) {
				t.Errorf("Refresh gives %v", err)
			}
		})
		stale()
		want["p/c"] = "p/c/z.gguf"
		if diff := cmp.Diff(want, paths(t, c, root)); diff != "" {
			t.Errorf("afterwards (-want +got):\n%s", diff)
		}
	})
}

// TestParse_WithoutFileDescriptors: a part that can't be opened isn't missing.
func TestParse_WithoutFileDescriptors(t *testing.T) {
	openfilestest.Run(t, func(t *testing.T, without func(func())) {
		dir := t.TempDir()
		first := write(t, dir, "m-00001-of-00002.gguf", f32)
		write(t, dir, "m-00002-of-00002.gguf", f32)
		without(func() {
			if _, err := parse(first, 0); !openfiles.AreExhausted(err) {
				t.Errorf("parse gives %v", err)
			}
		})
		if err := os.Remove(first); err != nil {
			t.Error(err)
		}
	})
}
