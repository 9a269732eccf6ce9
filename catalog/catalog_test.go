package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCatalog_OfNothing(t *testing.T) {
	t.Parallel()
	c := New(slog.New(slog.DiscardHandler), FormatGGUF)
	dir := t.TempDir()
	for name, roots := range map[string][]string{
		"no folders": nil, "an empty folder": {dir}, "a folder that isn't there": {filepath.Join(dir, "none")},
		"a file": {write(t, t.TempDir(), "a.gguf", f32)},
	} {
		c.SetRoots(roots)
		if all := models(t, c); len(all) != 0 {
			t.Errorf("%s: %v", name, all)
		}
		_, err := c.Lookup(t.Context(), "a")
		if diff := cmp.Diff(error(&NotFoundError{Name: "a"}), err); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestCatalog_SeesWhatChanges: a scan is used for a moment, then new and deleted files are noticed.
func TestCatalog_SeesWhatChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, root := catalogOf(t, files{"p/a/x.gguf": f32})
		check := func(when string, want map[string]string) {
			t.Helper()
			if diff := cmp.Diff(want, paths(t, c, root)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		one := map[string]string{"p/a": "p/a/x.gguf"}
		both := map[string]string{"p/a": "p/a/x.gguf", "p/b": "p/b/y.gguf"}
		check("at first", one)
		write(t, root, "p/b/y.gguf", f32)
		almostLater()
		check("at once", one)
		aMomentLater()
		check("after a moment", both)
		if err := os.RemoveAll(filepath.Join(root, "p", "a")); err != nil {
			t.Fatal(err)
		}
		check("gone, at once", both)
		aMomentLater()
		check("gone, after a moment", map[string]string{"p/b": "p/b/y.gguf"})
		if n := len(c.headers); n != 1 {
			t.Errorf("%d headers are kept, of 1 file", n)
		}
	})
}

// TestLookup_LooksAgain for models that are missing or broken, but not for known ones.
func TestLookup_LooksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, root := catalogOf(t, files{"p/a/x.gguf": f32, "p/half/x.gguf": f32[:500]})
		lookup := func(name string) string {
			m, err := c.Lookup(t.Context(), name)
			switch {
			case err != nil:
				return "not found"
			case m.Err != nil:
				return "broken"
			default:
				return m.Key
			}
		}
		check := func(when string, want ...string) {
			t.Helper()
			got := []string{lookup("p/a"), lookup("p/half"), lookup("new")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		check("at first", "p/a", "broken", "not found")
		write(t, root, "p/new/x.gguf", f32)
		write(t, root, "p/half/x.gguf", f32)
		almostLater()
		check("at once", "p/a", "p/half", "p/new")
		aMomentLater()
		first := c.last.Load()
		if got := lookup("p/a"); got != "p/a" || c.last.Load() != first {
			t.Errorf("what is known (%s) was looked for again", got)
		}
	})
}

// TestLookup_OfUnknownNamesKeepsTheDiskFree: requests for unknown names share scans, which take no more than a tenth of the
// time.
func TestLookup_OfUnknownNamesKeepsTheDiskFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, root := catalogOf(t, files{"p/a/x.gguf": f32})
		models(t, c)
		slow := func() { // as if the scan had taken that long
			l := *c.last.Load()
			l.took = 100 * time.Millisecond
			c.last.Store(&l)
		}
		slow()
		begun, before := time.Now(), c.begun.Load()
		var asking sync.WaitGroup
		for i := range 100 {
			asking.Go(func() {
				if _, err := c.Lookup(t.Context(), fmt.Sprintf("none%d", i)); err == nil {
					t.Errorf("none%d was found", i)
				}
			})
		}
		synctest.Wait()
		write(t, root, "p/new/x.gguf", f32)
		if m, err := c.Lookup(t.Context(), "new"); err != nil || m.Key != "p/new" {
			t.Errorf("%v, %v", m.Key, err)
		}
		asking.Wait()
		if took, scans := time.Since(begun), c.begun.Load()-before; took != time.Second || scans != 1 {
			t.Errorf("%d scans in %v", scans, took)
		}
		slow()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := c.Lookup(ctx, "none"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who has gone waits for the scan: %v", err)
		}
	})
}

// TestLookup_ByOtherNames: the first name has precedence.
func TestLookup_ByOtherNames(t *testing.T) {
	t.Parallel()
	c, _ := catalogOf(t, files{"p/a/x.gguf": f32, "p/b/x.gguf": f32, "q/b/x.gguf": f32})
	for name, tt := range map[string]struct {
		names []string
		want  string
	}{
		"the first":          {[]string{"a", "p/b"}, "p/a"},
		"another":            {[]string{"none", "nobody/none", "p/b"}, "p/b"},
		"none":               {[]string{"none", "nobody/none"}, ""},
		"ambiguous, at once": {[]string{"b", "p/a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := c.Lookup(t.Context(), tt.names[0], tt.names[1:]...)
			known, unknown := c.Known(tt.names[0], tt.names[1:]...)
			if m.Key != tt.want || (err == nil) != (tt.want != "") || known.Key != tt.want || (unknown == nil) != (err == nil) {
				t.Errorf("%q, %v; known: %q, %v", m.Key, err, known.Key, unknown)
			}
			if missing, ok := errors.AsType[*NotFoundError](err); ok && missing.Name != tt.names[0] {
				t.Errorf("the error is about %s", missing.Name)
			}
		})
	}
}

func TestSetRoots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := t.TempDir(), t.TempDir()
		write(t, first, "p/same/x.gguf", f32)
		write(t, first, "p/broken/x.gguf", nil)
		write(t, first, "p/one/x.gguf", f32)
		write(t, second, "p/same/x.gguf", f16)
		write(t, second, "p/broken/x.gguf", f16)
		write(t, second, "p/two/x.gguf", f16)
		c := New(slog.New(slog.DiscardHandler), FormatGGUF)
		check := func(want map[string]string, roots ...string) {
			t.Helper()
			c.SetRoots(roots)
			got := map[string]string{}
			for _, m := range models(t, c) {
				got[m.Key] = m.Quantization.Name
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d roots (-want +got):\n%s", len(roots), diff)
			}
		}
		check(map[string]string{"p/same": "F32", "p/broken": "", "p/one": "F32"}, first)
		check(map[string]string{"p/same": "F16", "p/broken": "F16", "p/two": "F16"}, second)
		check(map[string]string{"p/same": "F32", "p/same@f16": "F16", "p/broken": "F16", "p/one": "F32", "p/two": "F16"}, first, second)
		check(map[string]string{"p/same": "F16", "p/same@f32": "F32", "p/broken": "F16", "p/one": "F32", "p/two": "F16"}, second, first)
		check(map[string]string{"p/same": "F32", "p/broken": "", "p/one": "F32"}, first, first)
		check(map[string]string{})
	})
}

// TestSetRoots_KeepsWhatItIsGiven: neither the caller's slice nor setting the same folders again affects the last scan.
func TestSetRoots_KeepsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "p/a/x.gguf", f32)
	roots := []string{root}
	c := New(slog.New(slog.DiscardHandler), FormatGGUF)
	c.SetRoots(roots)
	models(t, c)
	last := c.last.Load()
	roots[0] = filepath.Join(root, "none")
	c.SetRoots([]string{root})
	if _, err := c.Lookup(t.Context(), "p/a"); err != nil || c.last.Load() != last {
		t.Errorf("the last scan was dropped; %v", err)
	}
}

func TestCatalog_StopsWithItsCaller(t *testing.T) {
	t.Parallel()
	c, _ := catalogOf(t, files{"p/a/x.gguf": f32})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Models(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("Models: %v", err)
	}
	if _, err := c.Lookup(gone, "p/a"); !errors.Is(err, context.Canceled) {
		t.Errorf("Lookup: %v", err)
	}
	if _, err := c.Lookup(t.Context(), "p/a"); err != nil {
		t.Errorf("after another caller's scan was cancelled: %v", err)
	}
	if _, err := c.Lookup(gone, "p/a"); err != nil {
		t.Errorf("what is known needs no scan: %v", err)
	}
}

// TestCatalog_TellsTheLogOnce of each problem, over many scans.
func TestCatalog_TellsTheLogOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log logged
		root := t.TempDir()
		c := New(log.logger(), FormatGGUF)
		c.SetRoots([]string{root})
		check := func(when string, want ...string) {
			t.Helper()
			for range 2 {
				aMomentLater()
				models(t, c)
			}
			var all strings.Builder
			for _, line := range want {
				fmt.Fprintf(&all, "level=WARN msg=\"a model file can't be used\" file=%s\n", strings.ReplaceAll(line, "ROOT", root))
			}
			if diff := cmp.Diff(all.String(), log.lines()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		write(t, root, "p/a/x.gguf", f32)
		check("all is well")
		write(t, root, "p/b/x.gguf", nil)
		check("an empty file", `ROOT/p/b/x.gguf reason="it is empty"`)
		write(t, root, "p/b/x.gguf", []byte("text"))
		check("a text file", `ROOT/p/b/x.gguf reason="it is not a GGUF file"`)
		write(t, root, "p/b/x.gguf", f32)
		check("a good file")
		link(t, root, "p/loop", root)
		check("a loop", `ROOT/p/loop reason="it links to a folder that contains it"`)
		link(t, root, "p/none", "nothing")
		check("a link to nothing", `ROOT/p/none reason="stat ROOT/p/none: no such file or directory"`)
		write(t, root, strings.Repeat("d/", maxNesting+1)+"x.gguf", f32)
		check("deep folders", `ROOT`+strings.Repeat("/d", maxNesting+1)+` reason="the folders are nested too deeply"`)
		write(t, root, "p/c/x.gguf", nil)
		write(t, root, "1/p/c/x.gguf", nil)
		check("broken files of one key", `ROOT/1/p/c/x.gguf reason="it is empty"`, `ROOT/p/c/x.gguf reason="it is empty"`)
		write(t, root, "0/p/a/x.gguf", f32)
		check("the same key", `ROOT/p/a/x.gguf reason="its key p/a@x is that of ROOT/0/p/a/x.gguf"`)
	})
}

// TestCatalog_MayBeAskedByAll: concurrent lookups, listings and settings while files change.
func TestCatalog_MayBeAskedByAll(t *testing.T) {
	t.Parallel()
	const rounds = 60
	c, root := catalogOf(t, files{"p/stays/x.gguf": f32})
	other := t.TempDir()
	write(t, other, "p/other/x.gguf", f16)
	ctx := t.Context()
	var wg sync.WaitGroup
	each := func(do func(i int) error) {
		wg.Go(func() {
			for i := range rounds {
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 3 {
		each(func(int) error {
			m, err := c.Lookup(ctx, "stays")
			if err == nil {
				err = m.Err
			}
			return err
		})
		each(func(int) error {
			all, err := c.Models(ctx)
			if err == nil && len(all) == 0 {
				err = errors.New("no models")
			}
			return err
		})
	}
	each(func(i int) error {
		c.SetRoots([][]string{{root}, {root, other}, {other, root}}[i%3])
		return nil
	})
	path := filepath.Join(root, "p", "comes-and-goes.gguf")
	each(func(i int) error {
		if i%2 == 0 {
			return os.WriteFile(path, f16[:len(f16)*(i%3+1)/3], 0o644)
		}
		return os.Remove(path)
	})
	wg.Wait()
	c.SetRoots([]string{root})
	if diff := cmp.Diff(map[string]string{"p/stays": "p/stays/x.gguf"}, paths(t, c, root)); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
}
