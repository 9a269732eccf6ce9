package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// nodeModules is the folder in which tools/node.sh installs the libraries; NODE_MODULES overrides it.
const nodeModules = "../.cache/clients/node_modules"

// withClaude gives the shipped model the names of Anthropic's models.
var withClaude = harness.Config{LM: []string{"model " + harness.Model + " {", "\talias claude-*", "}"}}

// TestClients_OpenAIForNode runs clients/openai.cjs.
func TestClients_OpenAIForNode(t *testing.T) {
	t.Parallel()
	overEngines(t, func(t *testing.T, e engine) {
		runNode(t, harness.Start(withOthers(e.home(t)), e.with(harness.Config{})), "openai", "openai.cjs", e.runtime)
	})
}

// TestClients_ResponsesForNode runs clients/responses.cjs.
func TestClients_ResponsesForNode(t *testing.T) {
	t.Parallel()
	url := harness.StartEverything(t, "streamableHttp")
	runNode(t, harness.Start(harness.NewHome(t), harness.Config{LM: openRemote}), "openai", "responses.cjs", url)
}

// TestClients_AnthropicForNode runs clients/anthropic.cjs.
func TestClients_AnthropicForNode(t *testing.T) {
	t.Parallel()
	overEngines(t, func(t *testing.T, e engine) {
		runNode(t, e.start(t, withClaude), "@anthropic-ai/sdk", "anthropic.cjs", e.runtime)
	})
}

// TestClients_AISDKForNode runs clients/ai-sdk.cjs. This version of its provider for Anthropic's API rejects null citations.
func TestClients_AISDKForNode(t *testing.T) {
	t.Parallel()
	url := harness.StartEverything(t, "streamableHttp")
	runNode(t, harness.Start(harness.NewHome(t), harness.Config{LM: openRemote}), "@ai-sdk/anthropic", "ai-sdk.cjs", url)
}

// runNode runs a script of clients/ that needs a library, against a server, with further arguments.
func runNode(t *testing.T, s *harness.Server, library, script string, more ...string) {
	t.Helper()
	runClient(t, nodeClient(t, s.Home, library, script, append([]string{s.Base}, more...)...))
}

// nodeClient is a run of a script of clients/ that needs a library.
func nodeClient(t *testing.T, h *harness.Home, library, script string, arguments ...string) *exec.Cmd {
	t.Helper()
	modules := os.Getenv("NODE_MODULES")
	if modules == "" {
		modules = nodeModules
	}
	modules, err := filepath.Abs(modules)
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, library))
	}
	if err != nil {
		t.Fatalf("the client libraries are missing: %v\nRun tools/node.sh .cache/clients in the repository's folder; `make test` does.", err)
	}
	cmd := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join("clients", script)}, arguments...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.User, "NODE_PATH=" + modules}
	return cmd
}

// runClient runs a client, which ends with another status than 0 if a check fails.
func runClient(t *testing.T, client *exec.Cmd) {
	t.Helper()
	timeout := time.AfterFunc(2*time.Minute, func() { _ = client.Process.Kill() })
	defer timeout.Stop()
	out, err := client.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
