package catalog

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// shipped is the folder of the models in this repository.
const shipped = "../testdata/models"

// f32 and f16 are small models with two quantizations.
var (
	f32 = llama("", map[string]any{"general.name": nil}).bytes()
	f16 = llama("", map[string]any{"general.name": nil, "general.file_type": uint32(1)}).bytes()
)

// files are contents by path.
type files map[string][]byte

// catalogOf returns a catalog of one root with these files.
func catalogOf(t *testing.T, all files) (*Catalog, string) {
	t.Helper()
	root := t.TempDir()
	for rel, content := range all {
		write(t, root, rel, content)
	}
	c := New(slog.New(slog.DiscardHandler), FormatGGUF)
	c.SetRoots([]string{root})
	return c, root
}

// models lists the models of a catalog.
// setFormats replaces the formats of the models that are listed.
func setFormats(c *Catalog, formats ...Format) { c.change(func(to *config) { to.formats = formats }) }

func models(t *testing.T, c *Catalog) []Model {
	t.Helper()
	all, err := c.Models(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// paths returns the models' paths below the root, by key. A broken model has a question mark.
func paths(t *testing.T, c *Catalog, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, m := range models(t, c) {
		rel, err := filepath.Rel(root, m.Path)
		if err != nil {
			t.Fatal(err)
		}
		if all[m.Key] = filepath.ToSlash(rel); m.Err != nil {
			all[m.Key] += "?"
		}
	}
	return all
}

// almostLater is the latest time at which a scan is still used. It is for the clock of a bubble.
func almostLater() { time.Sleep(freshFor) }

// aMomentLater is a time at which a scan is outdated. It is for the clock of a bubble.
func aMomentLater() { time.Sleep(freshFor + 1) }

// logged is a log that tests can read.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// lines returns what was logged since the last call, without times.
func (l *logged) lines() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// fileAt returns a GGUF file in the form of a walk's results.
func fileAt(path string, info fs.FileInfo) *found {
	return &found{path: path, info: info, size: info.Size(), changed: info.ModTime(), format: FormatGGUF}
}

// sameText compares errors by their text.
var sameText = cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
