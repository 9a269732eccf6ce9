package node

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
)

// TestSettingsOf: a block of settings goes by any name that requests may use.
func TestSettingsOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"lmcaddy/tinychat": 512, "tinychat": 512, "lmcaddy/tinychat-gguf": 512, "other/tinychat": 0, "tiny": 0,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := open(t, withModel(t))
			push(t, n, 1, Settings{Models: map[string]ModelSettings{name: {ContextLength: 512}}})
			target, err := n.Names.Find(t.Context(), "tinychat")
			if err != nil {
				t.Fatal(err)
			}
			if got := n.Names.settingsOf(n.settings.Load(), target.Model.Key).ContextLength; got != want {
				t.Errorf("context_length %d, want %d", got, want)
			}
		})
	}
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), part)
}

// TestSettings_ThatDoNothing are told of at the start, and others aren't.
func TestSettings_ThatDoNothing(t *testing.T) {
	t.Parallel()
	var log lines
	dir := withModel(t)
	n := open(t, dir)
	missing := filepath.Join(t.TempDir(), "none")
	push(t, n, 1, Settings{
		Log:        slog.New(slog.NewTextHandler(&log, nil)),
		Engines:    llamaServer(EngineSettings{Path: filepath.Join(missing, "llama-server")}),
		ModelsDirs: []string{missing, filepath.Join(shippedFolder(t), "tinychat-f16.gguf"), t.TempDir()},
		Models: map[string]ModelSettings{
			"lmcaddy/nobody": {}, "lmcaddy/tinychat": {Draft: "nothing"}, "tinychat": {Aliases: []string{"gpt"}},
		},
		MCP: MCPSettings{Settings: servers.Settings{PrivateHosts: []string{"tools.lan"}}, MaxRounds: 5},
	})
	for _, want := range []string{
		"a models folder doesn't exist", missing, "models_dir is not a folder", "the settings of a model have no effect",
		"model=lmcaddy/nobody", "without its draft model", "model=nothing", "two blocks of settings",
		"no model can be loaded", "llama-server doesn't exist", "mcp_private_hosts has no effect", "mcp_timeout, mcp_idle and mcp_max_rounds have no effect",
	} {
		testkit.Eventually(t, "the log says "+want, func() bool { return log.has(want) })
	}

	var healthy lines
	other := open(t, withModel(t))
	push(t, other, 1, Settings{
		Log: slog.New(slog.NewTextHandler(&healthy, nil)), ModelsDirs: []string{t.TempDir()},
		Models: map[string]ModelSettings{"tinychat": {Aliases: []string{"gpt"}}},
	})
	other.warnIdle(other.settings.Load())
	if healthy.has("level=WARN") {
		t.Errorf("of settings that do something: %s", &healthy.text)
	}
}

func shippedFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(shipped)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
