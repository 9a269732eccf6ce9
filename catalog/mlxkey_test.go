package catalog

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bf16 is a small model with a quantization that MLX has as well.
var bf16 = llama("", map[string]any{"general.name": nil, "general.file_type": uint32(32)}).bytes()

// TestMLX_Keys: the models of a repository have different keys, whatever their formats.
func TestMLX_Keys(t *testing.T) {
	t.Parallel()
	floats := files{
		"config.json":       []byte(`{"model_type":"llama"}`),
		"model.safetensors": safetensors("mlx", map[string][]int{"norm.weight": {100}}),
	}
	for name, tt := range map[string]struct {
		gguf, mlx []string // paths
		float     bool     // the folder has the quantization bf16
		want      map[string]string
	}{
		"a folder alone": {nil, []string{"a/Tiny-MLX"}, false, map[string]string{"a/tiny": "a/Tiny-MLX"}},
		"two repositories": {
			[]string{"a/Tiny-GGUF/Tiny-Q4_0.gguf"},
			[]string{"a/Tiny-MLX"},
			false,
			map[string]string{"a/tiny@f32": "a/Tiny-GGUF/Tiny-Q4_0.gguf", "a/tiny@4bit": "a/Tiny-MLX"},
		},
		"one repository": {
			[]string{"a/Tiny/Tiny-Q4_0.gguf"},
			[]string{"a/Tiny"},
			false,
			map[string]string{"a/tiny@f32": "a/Tiny/Tiny-Q4_0.gguf", "a/tiny@4bit": "a/Tiny"},
		},
		"one quantization": {
			[]string{"a/Tiny-GGUF/Tiny.gguf"},
			[]string{"a/Tiny-MLX"},
			true,
			map[string]string{"a/tiny@bf16": "a/Tiny-GGUF/Tiny.gguf", "a/tiny@mlx-bf16": "a/Tiny-MLX"},
		},
		"two quantizations": {
			nil,
			[]string{"a/Tiny-MLX", "a/Tiny-MLX-4bit"},
			false,
			map[string]string{"a/tiny": "a/Tiny-MLX", "a/tiny-mlx-4bit": "a/Tiny-MLX-4bit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, root := catalogOf(t, nil)
			setFormats(c, FormatGGUF, FormatMLX)
			for _, path := range tt.gguf {
				content := f32
				if tt.float {
					content = bf16
				}
				write(t, root, path, content)
			}
			var more files
			if tt.float {
				more = floats
			}
			for _, folder := range tt.mlx {
				for rel, content := range mlxModel(more) {
					write(t, root, folder+"/"+rel, content)
				}
			}
			if diff := cmp.Diff(tt.want, paths(t, c, root)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMLX_FullKeyStays: the full key of a folder means it still when a file of the same quantization is added to its repository.
func TestMLX_FullKeyStays(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, nil)
	setFormats(c, FormatGGUF, FormatMLX)
	for rel, content := range mlxModel(files{
		"config.json":       []byte(`{"model_type":"llama"}`),
		"model.safetensors": safetensors("mlx", map[string][]int{"norm.weight": {100}}),
	}) {
		write(t, root, "a/Tiny-MLX/"+rel, content)
	}
	alone := models(t, c)[0]
	if _, err := c.Lookup(t.Context(), "a/tiny@"+strings.ToLower(alone.Quantization.Name)); err != nil {
		t.Errorf("by the quantization alone: %v", err)
	}
	write(t, root, "a/Tiny-GGUF/Tiny-BF16.gguf", bf16)
	later := New(slog.New(slog.DiscardHandler), FormatGGUF, FormatMLX)
	later.SetRoots([]string{root})
	m, err := later.Lookup(t.Context(), alone.FullKey())
	if err != nil || m.Path != alone.Path {
		t.Errorf("%s is now %s: %v", alone.FullKey(), m.Path, err)
	}
}

// TestMLX_Embeddings: the name of a repository tells embedding models that have a chat model's type.
func TestMLX_Embeddings(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{
		"Qwen/Qwen3-Embedding-0.6B-4bit", "models--a--Qwen3-Embedding-MLX/snapshots/1", "a/plain/nomic-embed-mlx",
	} {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			c, root := catalogOf(t, nil)
			setFormats(c, FormatMLX)
			for rel, content := range mlxModel(nil) {
				write(t, root, folder+"/"+rel, content)
			}
			if all := models(t, c); len(all) != 1 || all[0].Type != TypeEmbedding || all[0].ToolUse {
				t.Errorf("%+v", all)
			}
		})
	}
}
