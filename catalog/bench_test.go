package catalog

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// many is the number of models in the benchmarks.
const many = 10_000

// manyModels returns a folder of many small models, and a path for their summary.
func manyModels(tb testing.TB, n int) (root, summary string) {
	tb.Helper()
	root = tb.TempDir()
	content := llama("Tiny", map[string]any{"tokenizer.chat_template": "{% if enable_thinking %}{{ tools }}{% endif %}"}).bytes()
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("publisher-%d", i%100), fmt.Sprintf("model-%d-GGUF", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "model-Q4_K_M.gguf"), content, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return root, filepath.Join(tb.TempDir(), "catalog.json")
}

func startedCatalog(tb testing.TB, root, summary string, n int) *Catalog {
	tb.Helper()
	c := New(slog.New(slog.DiscardHandler), FormatGGUF)
	c.SetSummary(summary)
	c.SetRoots([]string{root})
	all, err := c.Models(tb.Context())
	if err != nil || len(all) != n {
		tb.Fatalf("%d models, want %d; %v", len(all), n, err)
	}
	return c
}

// BenchmarkStart measures the first listing of ten thousand models, with and without a summary.
func BenchmarkStart(b *testing.B) {
	root, summary := manyModels(b, many)
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			startedCatalog(b, root, "", many)
		}
	})
	startedCatalog(b, root, summary, many).Save()
	b.Run("summary", func(b *testing.B) {
		for b.Loop() {
			startedCatalog(b, root, summary, many)
		}
	})
}

// BenchmarkListing measures a listing for growing numbers of models: from the last scan, after a scan without changes, and
// after one that finds a new file.
func BenchmarkListing(b *testing.B) {
	for _, n := range []int{100, 1000, many} {
		root, summary := manyModels(b, n)
		c := startedCatalog(b, root, summary, n)
		b.Run(fmt.Sprintf("again/%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Models(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("unchanged/%d", n), func(b *testing.B) {
			for b.Loop() {
				if err := c.Refresh(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		content := llama("More", nil).bytes()
		b.Run(fmt.Sprintf("added/%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				path := filepath.Join(root, "publisher-0", fmt.Sprintf("more-%d.gguf", i))
				if err := os.WriteFile(path, content, 0o644); err != nil {
					b.Fatal(err)
				}
				if err := c.Refresh(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLookup measures the lookup of one model among ten thousand.
func BenchmarkLookup(b *testing.B) {
	root, _ := manyModels(b, many)
	c := startedCatalog(b, root, "", many)
	for name, ask := range map[string]string{"key": "publisher-7/model-107", "bare": "Model-107"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Lookup(b.Context(), ask); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHeader reads the header of a model with a large vocabulary.
func BenchmarkHeader(b *testing.B) {
	tokens, merges := make([]string, 128_000), make([]string, 256_000)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token %d", i)
	}
	for i := range merges {
		merges[i] = fmt.Sprintf("to ken%d", i)
	}
	content := llama("Large", map[string]any{"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": merges}).bytes()
	path := filepath.Join(b.TempDir(), "large.gguf")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if h := readHeader(fileAt(path, info)); h.model.Err != nil {
			b.Fatal(h.model.Err)
		}
	}
}
