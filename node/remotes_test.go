package node

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

// TestNode_SettingsOfModelsOnRemotes have an effect, so nothing is said against them, even if the remote answers later.
func TestNode_SettingsOfModelsOnRemotes(t *testing.T) {
	var log lines
	answers := make(chan struct{})
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-answers
		_, _ = io.WriteString(w, `{"data":[{"id":"Org/Far","owned_by":"vllm"}]}`)
	}))
	t.Cleanup(far.Close)
	n := open(t, withModel(t))
	push(t, n, 1, Settings{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Remotes: []remote.Config{{Name: "far", URL: far.URL}},
		ModelsDirs: []string{filepath.Join(t.TempDir(), "none")},
		Models:     map[string]ModelSettings{"org/far": {Aliases: []string{"gpt"}}, "org/nobody": {}},
	})
	testkit.Eventually(t, "the settings are checked", func() bool { return log.has("a models folder doesn't exist") })
	close(answers)
	testkit.Eventually(t, "a model that nobody has is warned of", func() bool { return log.has("model=org/nobody") })
	if log.has("model=org/far") {
		t.Errorf("%s", &log.text)
	}
}
