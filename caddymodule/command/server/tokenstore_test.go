package server

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
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

// TestToken_WhileAServerEnds: a home that is in use for another moment, without a server that answers, is waited for.
func TestToken_WhileAServerEnds(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("LMCADDY_HOME", dir)
	lock, err := node.Reserve(home.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	time.AfterFunc(500*time.Millisecond, func() { released <- lock.Release() })
	cmd := &cobra.Command{Use: "token", SilenceUsage: true}
	DefineToken(cmd)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs([]string{"create", "--name", "laptop"})
	if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(out.String(), "sk-lm-") {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
}
