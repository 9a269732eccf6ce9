package mlx

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzAddedTokens: an invalid tokenizer.json is only an error.
func FuzzAddedTokens(f *testing.F) {
	f.Add([]byte(`{"normalizer":{"type":"NFC"},"added_tokens":[{"content":"x"}],"model":{"type":"BPE","vocab":{"a":1}}}`))
	f.Add([]byte(`{"model":{"vocab":[["a",1]]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), vocabularyFile)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		readAdded(path, map[string]bool{})
	})
}
