package catalog

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDetails(t *testing.T) {
	t.Parallel()
	full := llama("Tiny", map[string]any{
		"tokenizer.chat_template": "{{ tools }}\n{{ messages }}", "general.license": "other", "general.license.name": "Tiny License",
		"general.license.link": "https://acme.example/license", "general.organization": "Acme\x1b[2J", "general.quantized_by": "bob",
		"general.repo_url": "javascript:alert(1)", "general.url": "https://acme.example/tiny", "general.base_model.0.repo_url": "https://user:secret@acme.example",
		"general.author": strings.Repeat("x", 1500),
	}).bytes()
	c, root := catalogOf(t, files{"acme/tiny-GGUF/tiny.gguf": full, "acme/plain/plain.gguf": f16})
	for key, want := range map[string]Details{
		"acme/tiny": {
			Files:        []ModelFile{{filepath.Join(root, "acme", "tiny-GGUF", "tiny.gguf"), int64(len(full)), "model"}},
			ChatTemplate: "{{ tools }}\n{{ messages }}", License: License{"other", "Tiny License", "https://acme.example/license"},
			Author: "Acme [2J", QuantizedBy: "bob", Source: "https://acme.example/tiny",
		},
		"acme/plain": {Files: []ModelFile{{filepath.Join(root, "acme", "plain", "plain.gguf"), int64(len(f16)), "model"}}},
	} {
		m, err := c.Lookup(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadDetails(&m)
		metadata := got.Metadata
		got.Metadata = nil
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", key, err, diff)
		}
		if metadata["general.architecture"] != "llama" || metadata["tokenizer.ggml.tokens"] != nil {
			t.Errorf("%s: %v", key, metadata)
		}
		if author := metadata["general.author"]; key == "acme/tiny" && (author != nil || metadata["general.organization"] != "Acme [2J") {
			t.Errorf("%v", metadata)
		}
	}
}

func TestDetails_OfSeveralFiles(t *testing.T) {
	t.Parallel()
	c := New(slog.New(slog.DiscardHandler), FormatGGUF)
	c.SetRoots([]string{shipped})
	m, err := c.Lookup(t.Context(), "tinyvision")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadDetails(&m)
	var roles []string
	for _, f := range got.Files {
		roles = append(roles, f.Role)
		if f.Size <= 0 {
			t.Errorf("%+v", f)
		}
	}
	if diff := cmp.Diff([]string{"model", "projector"}, roles); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	m.Path = filepath.Join(t.TempDir(), "gone.gguf")
	if _, err := ReadDetails(&m); err == nil {
		t.Error("a file that is gone has details")
	}
}

func TestDetails_OfAnMLXFolder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ card, license string }{
		"a card":            {"---\nlanguage: en\nlicense: apache-2.0\n---\n# Tiny\n", "apache-2.0"},
		"a card of nothing": {"# Tiny\nlicense: mit\n", ""},
		"in the text":       {"---\nlanguage: en\n---\nlicense: mit\n", ""},
		"none":              {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, root, "config.json", []byte(`{}`))
			write(t, root, "model.safetensors", []byte("0123456789"))
			write(t, root, "chat_template.jinja", []byte("{{ messages }}"))
			if tt.card != "" {
				write(t, root, "README.md", []byte(tt.card))
			}
			got, err := ReadDetails(&Model{Key: "a/b", Path: root, Format: FormatMLX})
			if err != nil || got.License.ID != tt.license || got.ChatTemplate != "{{ messages }}" || len(got.Files) != 3 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
