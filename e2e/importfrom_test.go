package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// The Caddyfile that an import writes is valid, and serves the other program's model by the name that its clients know.
func TestImportFrom(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	if err := os.RemoveAll(filepath.Join(h.Dir, "models")); err != nil {
		t.Fatal(err)
	}
	put := func(path string, content []byte) {
		t.Helper()
		path = filepath.Join(h.Work, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	model := harness.ShippedModel(t)
	sum := sha256.Sum256(model)
	digest := hex.EncodeToString(sum[:])
	put("ollama/blobs/sha256-"+digest, model)
	put("ollama/manifests/registry.ollama.ai/library/tiny/1m", fmt.Appendf(nil,
		`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s"}]}`, digest))
	put("lmstudio/models/ann/Tiny-GGUF/tiny-f16.gguf", model)
	put("lmstudio/.internal/user-concrete-model-default-config/ann/Tiny-GGUF/tiny-f16.gguf.json",
		[]byte(`{"load":{"fields":[{"key":"llm.load.contextLength","value":512}]}}`))
	put("swap/config.yaml", fmt.Appendf(nil, `
macros: {server: "llama-server --port ${PORT}"}
models:
  tiny:fast:
    cmd: |
      ${server} -m %s -c 1024 -np 2 --threads 1
    aliases: [gpt-4o]
    ttl: 60
`, filepath.Join(h.Work, "lmstudio/models/ann/Tiny-GGUF/tiny-f16.gguf")))

	for _, tt := range []struct {
		program, place string
		names          []string
		context        string
	}{
		{"ollama", "ollama", []string{"tiny:1m", "library/tiny"}, ""},
		{"lmstudio", "lmstudio", []string{"ann/tiny", "tiny"}, "512"},
		{"llama-swap", "swap/config.yaml", []string{"tiny:fast", "gpt-4o"}, "512"},
	} {
		t.Run(tt.program, func(t *testing.T) {
			h := h.In(t)
			file := tt.program + ".Caddyfile"
			dry := h.Command("import", "--from", tt.program, tt.place, "--dry-run")
			wantDone(t, dry, "lm_api")
			if _, err := os.Stat(filepath.Join(h.Work, file)); err == nil {
				t.Error("a dry run has written a file")
			}
			wantDone(t, h.Command("import", "--from", tt.program, tt.place, "--output", file), "is written")
			wantFailed(t, h.Command("import", "--from", tt.program, tt.place, "--output", file), "already exists")
			wantDone(t, h.Command("validate", "--config", file), "Valid")
			written, err := os.ReadFile(filepath.Join(h.Work, file))
			if err != nil {
				t.Fatal(err)
			}
			port := harness.FreePort(t)
			for _, own := range []string{":11434 ", ":1234 ", ":8080 "} {
				written = []byte(strings.Replace(string(written), own, fmt.Sprintf(":%d ", port), 1))
			}
			s := h.Launch(port, "run", "--config", h.WriteFile(file, string(written)))
			for _, name := range tt.names {
				if a := s.Chat(harness.Ask(capital).With("model", name)); a.Content != paris {
					t.Errorf("%s answers %q", name, a.Content)
				}
			}
			if out := s.Command("ps", "--json").Output; tt.context != "" && !strings.Contains(out, `"context_length": `+tt.context) {
				t.Errorf("the context isn't %s: %s", tt.context, out)
			}
			s.Stop(syscall.SIGTERM, harness.Patience)
		})
	}
}
