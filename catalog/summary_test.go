package catalog

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// started returns a catalog as in a new process.
func started(log *slog.Logger, summary string, roots ...string) *Catalog {
	c := New(log)
	c.SetSummary(summary)
	setFormats(c, FormatGGUF, FormatMLX)
	c.SetRoots(roots)
	return c
}

// TestSummary_SparesReading: the next process uses the summary. The test changes the files but not their sizes and times. All
// properties of the model are the same.
func TestSummary_SparesReading(t *testing.T) {
	t.Parallel()
	root, summary := t.TempDir(), filepath.Join(t.TempDir(), "catalog.json")
	write(t, root, "p/good/x.gguf", llama("Good", map[string]any{
		"tokenizer.chat_template": "{{ tools }}{{ enable_thinking }}", "general.description": "Good \u2028 <one>", "llama.expert_count": uint32(8),
	}).bytes())
	write(t, root, "p/good/mmproj.gguf", seesFile)
	write(t, root, "p/broken/x.gguf", f32[:500])
	write(t, root, "p/lora/x.gguf", loraFile)
	for rel, content := range mlxModel(nil) {
		write(t, root, "p/apple/"+rel, content)
	}
	first := started(slog.New(slog.DiscardHandler), summary, root)
	want := models(t, first)
	for _, rel := range []string{"p/good/x.gguf", "p/good/mmproj.gguf", "p/broken/x.gguf", "p/lora/x.gguf", "p/apple/model.safetensors"} {
		path := filepath.Join(root, rel)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, root, rel, bytes.Repeat([]byte{'x'}, int(info.Size())))
		touch(t, path, info.ModTime())
	}
	got := models(t, started(slog.New(slog.DiscardHandler), summary, root))
	if diff := cmp.Diff(want, got, sameText); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	if len(want) != 3 || !want[1].Vision && !want[2].Vision {
		t.Errorf("%d models; want three, one of which sees", len(want))
	}
}

// TestSummary_IsToleratedWhateverItIs: an invalid one is logged and replaced.
func TestSummary_IsToleratedWhateverItIs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "p/a/x.gguf", f32)
	good := filepath.Join(t.TempDir(), "catalog.json")
	models(t, started(slog.New(slog.DiscardHandler), good, root))
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"empty": {}, "text": []byte("text"), "another's": []byte(`{"models":[]}`), "of another version": []byte(`{"lmcaddy_catalog":999}`),
		"cut": text[:len(text)-10], "garbage at its end": append(bytes.Clone(text), "}{"...), "wrong types": []byte(`{"lmcaddy_catalog":1}` + "\n" + `{"path":7}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log logged
			path := write(t, t.TempDir(), "catalog.json", content)
			if diff := cmp.Diff(map[string]string{"p/a": "p/a/x.gguf"}, paths(t, started(log.logger(), path, root), root)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if lines := log.lines(); !strings.Contains(lines, "all headers are read again") {
				t.Errorf("the log: %q", lines)
			}
			models(t, started(log.logger(), path, root))
			if lines := log.lines(); lines != "" {
				t.Errorf("it was not replaced: %s", lines)
			}
		})
	}
}

// TestSummary_IsWrittenRarely, atomically, and readable by this user only; Save writes later changes.
func TestSummary_IsWrittenRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		root, dir := t.TempDir(), t.TempDir()
		path := filepath.Join(dir, "catalog.json")
		lines := func() int {
			text, err := os.ReadFile(path)
			if err != nil {
				return -1
			}
			return bytes.Count(text, []byte("\n"))
		}
		check := func(when string, want int) {
			t.Helper()
			if got := lines(); got != want {
				t.Errorf("%s: %d lines, want %d", when, got, want)
			}
		}
		c := started(slog.New(slog.DiscardHandler), path, root)
		check("before anything was asked", -1)
		write(t, root, "p/a/x.gguf", f32)
		models(t, c)
		check("the first scan", 2)
		write(t, root, "p/b/x.gguf", f32)
		aMomentLater()
		models(t, c)
		check("soon after", 2)
		time.Sleep(saveEvery)
		models(t, c)
		check("later", 3)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(saveEvery)
		models(t, c)
		check("nothing has changed", -1)
		write(t, root, "p/c/x.gguf", f32)
		time.Sleep(saveEvery)
		models(t, c)
		write(t, root, "p/d/x.gguf", f32)
		aMomentLater()
		models(t, c)
		check("four files, one just now", 4)
		c.Save()
		check("in the end", 5)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("%v beside it; %v", entries, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v; %v", info.Mode(), err)
		}
	})
}

// TestSummary_CantBeWritten: that is only logged.
func TestSummary_CantBeWritten(t *testing.T) {
	t.Parallel()
	var log logged
	root := t.TempDir()
	write(t, root, "p/a/x.gguf", f32)
	c := started(log.logger(), filepath.Join(root, "none", "catalog.json"), root)
	if len(models(t, c)) != 1 || !strings.Contains(log.lines(), "can't be written") {
		t.Error("no models, or nothing in the log")
	}
}

// FuzzSummary: a damaged summary is only an error.
func FuzzSummary(f *testing.F) {
	var whole bytes.Buffer
	if err := writeSummary(&whole, map[string]header{"/x.gguf": {size: 1, parts: "2: none", model: Model{Format: FormatGGUF}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Add([]byte(`{"lmcaddy_catalog":1}{"path":"/x","model":{"Experts":-1,"Reasoning":{"Options":["x"]}},"kind":9}`))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = readSummary(bytes.NewReader(text)) })
}
