package catalog

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// toyFiles are a format that the catalog doesn't know by itself: the content is the architecture.
var toyFiles = Files{Format: "toy", Ending: ".toy", Read: func(path string) (Model, error) {
	text, err := os.ReadFile(path)
	if err == nil && len(text) == 0 {
		err = errors.New("it is empty")
	}
	return Model{Type: TypeLLM, Architecture: string(text), MaxContextLength: 512}, err
}}

func TestSetFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "pub", "ball")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("ball.toy", "round")
	write("ball.txt", "round")
	write(".toy", "round")
	c := New(slog.New(slog.DiscardHandler), "toy")
	c.SetFiles(toyFiles)
	c.SetRoots([]string{root})
	all, err := c.Models(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("models %+v, error %v", all, err)
	}
	m := all[0]
	if m.Key != "pub/ball" || m.Path != path || m.Format != "toy" || m.Architecture != "round" || m.SizeBytes != 5 || m.Err != nil {
		t.Errorf("model %+v", m)
	}
	// It is read again when it changes, and a broken one says why.
	for text, isBroken := range map[string]bool{"oblong": false, "": true} {
		write("ball.toy", text)
		at := time.Now().Add(time.Duration(len(text)+1) * time.Hour)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m, err := c.Lookup(t.Context(), "pub/ball"); err != nil || m.Architecture != text || (m.Err != nil) != isBroken {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
	write("ball.toy", "round")
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, err = c.Lookup(t.Context(), "pub/ball"); err == nil {
		err = c.Remove(t.Context(), root, m)
	}
	if _, gone := os.Stat(path); err != nil || !errors.Is(gone, os.ErrNotExist) {
		t.Errorf("error %v, its file: %v", err, gone)
	}
}

// Models of formats that no engine runs aren't listed.
func TestNew_ListsTheFormatsThatItIsGiven(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../testdata/models")
	if err != nil {
		t.Fatal(err)
	}
	for _, formats := range [][]Format{nil, {"toy"}, {FormatGGUF}} {
		c := New(slog.New(slog.DiscardHandler), formats...)
		c.SetRoots([]string{root})
		all, err := c.Models(t.Context())
		if isListed := len(all) > 0; err != nil || isListed != (len(formats) == 1 && formats[0] == FormatGGUF) {
			t.Errorf("%v: %d models, error %v", formats, len(all), err)
		}
	}
}
