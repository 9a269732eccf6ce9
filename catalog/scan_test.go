package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestScan_ThatFindsNothingNew returns the same listing.
func TestScan_ThatFindsNothingNew(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, files{"p/a/x.gguf": f32, "p/b/x.gguf": f16, "p/broken/x.gguf": nil})
	refresh := func() *listing {
		t.Helper()
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c.last.Load()
	}
	first := refresh()
	if second := refresh(); second == first || &second.models[0] != &first.models[0] {
		t.Error("nothing was looked at, or the models were made again")
	}
	write(t, root, "p/c/x.gguf", f16)
	if third := refresh(); &third.models[0] == &first.models[0] || len(third.models) != 4 {
		t.Errorf("a file more is %d models", len(third.models))
	}
	link(t, root, "p/d", "c")
	if n := len(refresh().models); n != 5 {
		t.Errorf("a link more is %d models", n)
	}
}

// TestLookup_SeesThatAFileHasChanged without a listing.
func TestLookup_SeesThatAFileHasChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, root := catalogOf(t, files{"p/a/x.gguf": f32})
		quantization := func() string {
			aMomentLater()
			m, err := c.Lookup(t.Context(), "p/a")
			if err != nil {
				return "none"
			}
			return m.Quantization.Name
		}
		got := []string{quantization()}
		write(t, root, "p/a/x.gguf", f16)
		touch(t, filepath.Join(root, "p", "a", "x.gguf"), time.Now())
		got = append(got, quantization())
		if err := os.Remove(filepath.Join(root, "p", "a", "x.gguf")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"F32", "F16", "none"}, append(got, quantization())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestScan_HasBounds: it ends for all folders, and logs what it left out.
func TestScan_HasBounds(t *testing.T) {
	t.Parallel()
	few := limits{folders: 20, files: 10, entries: 15}
	const tooMuch = "it has more than 20 folders or 10 model files: the rest is left out; point models_dir at a smaller folder"
	for name, tt := range map[string]struct {
		path   string // with a number in it
		n      int
		want   int
		reason string
	}{
		"few":                       {"p/a/x-%d.gguf", 10, 10, ""},
		"many models":               {"p/a/x-%d.gguf", 11, 10, tooMuch},
		"many folders":              {"p/a%02d/x.gguf", 15, 10, tooMuch},
		"many folders without":      {"p%d/a/text", 12, 0, tooMuch},
		"many entries":              {"p/x%02d/x.bin", 30, 0, "it has more than 15 entries: the rest is left out"},
		"many entries of no matter": {"p/a/x-%d.bin", 100, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log logged
			root := t.TempDir()
			for i := range tt.n {
				write(t, root, fmt.Sprintf(tt.path, i), f32)
			}
			c := New(log.logger(), FormatGGUF)
			c.limits = few
			c.SetRoots([]string{root})
			if n := len(models(t, c)); n != tt.want {
				t.Errorf("%d models, want %d", n, tt.want)
			}
			if lines := log.lines(); !strings.Contains(lines, tt.reason) || (lines == "") != (tt.reason == "") {
				t.Errorf("the log: %s", lines)
			}
		})
	}
}

// TestScan_EndsAmongManyLinks: thirty folders, each with links to all others, have too many paths to follow.
func TestScan_EndsAmongManyLinks(t *testing.T) {
	t.Parallel()
	const n = 30
	c, root := catalogOf(t, nil)
	for i := range n {
		write(t, root, fmt.Sprintf("p/m%d/x.gguf", i), f32)
		for j := range n {
			link(t, root, fmt.Sprintf("p/m%d/to-m%d", i, j), filepath.Join(root, "p", fmt.Sprintf("m%d", j)))
		}
	}
	all := models(t, c)
	for i := range n {
		if m, err := c.Lookup(t.Context(), fmt.Sprintf("p/m%d", i)); err != nil || m.Err != nil {
			t.Fatalf("m%d of %d: %v, %v", i, len(all), err, m.Err)
		}
	}
	if most := n * (maxVisits + 1); len(all) > most {
		t.Errorf("%d models, want no more than %d", len(all), most)
	}
}

// endingContext ends after a number of calls.
type endingContext struct {
	context.Context
	left *atomic.Int64
}

func (c endingContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestScan_KeepsWhatItHasRead when its context ends. Otherwise a large folder would never be read completely.
func TestScan_KeepsWhatItHasRead(t *testing.T) {
	t.Parallel()
	const n = 50
	root, _ := manyModels(t, n)
	c := New(slog.New(slog.DiscardHandler), FormatGGUF)
	c.SetRoots([]string{root})
	var asked atomic.Int64
	asked.Store(1 << 40)
	if _, err := c.Models(endingContext{t.Context(), &asked}); err != nil {
		t.Fatal(err)
	}
	c.headers = map[string]header{}
	c.SetRoots([]string{root + "/."})
	tries := 1
	for ; ; tries++ {
		var left atomic.Int64
		left.Store(1<<40 - asked.Load() - n + 10) // enough for the walk, and for a few headers
		_, err := c.Models(endingContext{t.Context(), &left})
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) || tries > n {
			t.Fatalf("try %d: %v, with %d headers read", tries, err, len(c.headers))
		}
	}
	if tries == 1 {
		t.Error("it was never interrupted")
	}
}

// TestScan_WaitsNoLongerThanItsCaller for another caller's scan.
func TestScan_WaitsNoLongerThanItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := catalogOf(t, files{"p/a/x.gguf": f32})
		if err := c.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Models(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		c.end()
		if n := len(models(t, c)); n != 1 {
			t.Errorf("%d models afterwards", n)
		}
	})
}

// TestScan_ThatTookLong is used for longer, but only for seconds.
func TestScan_ThatTookLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := catalogOf(t, nil)
		models(t, c)
		for took, want := range map[time.Duration]time.Duration{
			0: time.Second, 50 * time.Millisecond: time.Second, 200 * time.Millisecond: 2 * time.Second, time.Minute: 5 * time.Second,
		} {
			l := *c.last.Load()
			l.took, l.at = took, time.Now().Add(-want)
			almost := c.answers(&l, true)
			l.at = l.at.Add(-1)
			if !almost || c.answers(&l, true) {
				t.Errorf("after %v it doesn't answer for %v", took, want)
			}
		}
	})
}

// TestHeader_IsReadAgain if the file couldn't be opened, which may change without a change of the file.
func TestHeader_IsReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.gguf")
	f := &found{path: path, format: FormatGGUF}
	if h := readHeader(f); h.model.Err == nil || h.describes(f) {
		t.Errorf("error %v is kept", h.model.Err)
	}
	write(t, filepath.Dir(path), "x.gguf", nil)
	if h := readHeader(f); h.model.Err == nil || !h.describes(f) {
		t.Errorf("error %v is not kept", h.model.Err)
	}
}

// TestScan_ThatReadsAHeaderAgain uses it, although the file looks unchanged.
func TestScan_ThatReadsAHeaderAgain(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, files{"p/a/x.gguf": f32})
	models(t, c)
	before := *c.last.Load()
	path, reason := filepath.Join(root, "p", "a", "x.gguf"), errors.New("it can't be opened")
	h := c.headers[path]
	h.unread, h.model.Err = true, reason
	c.headers[path] = h
	before.models = []Model{{Key: "p/a", Path: path, Err: reason}}
	c.last.Store(&before)
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.last.Load().models[0].Err; err != nil {
		t.Errorf("still: %v", err)
	}
}

// TestNotFoundError_IsShort, however many models there are.
func TestNotFoundError_IsShort(t *testing.T) {
	t.Parallel()
	err := &NotFoundError{Name: "x"}
	for i := range 1000 {
		err.Known = append(err.Known, fmt.Sprintf("p/model-%03d", i))
	}
	if text := err.Error(); len(text) > 100 || !strings.HasSuffix(text, "p/model-002, and 997 more.") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}
