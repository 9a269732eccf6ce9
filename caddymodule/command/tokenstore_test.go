package command

import (
	"os"
	"path/filepath"
	"testing"
)

func TestToken_UsesPostgres(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		saved string
		want  bool
	}{
		"nothing saved": {"", false}, "nonsense": {"{", false}, "SQLite": {`{"apps":{"lm":{}}}`, false},
		"PostgreSQL": {`{"apps":{"lm":{"store":{"postgres_url":"{env.X}"}}}}`, true},
	} {
		file := filepath.Join(t.TempDir(), "autosave.json")
		if tt.saved != "" {
			if err := os.WriteFile(file, []byte(tt.saved), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := usesPostgres(file); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
