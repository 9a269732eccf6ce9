package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// nodeModules is the folder in which tools/node.sh installs the libraries; NODE_MODULES overrides it.
const nodeModules = "../.cache/clients/node_modules"

// TestClients_OpenAIForNode runs clients/openai.cjs.
func TestClients_OpenAIForNode(t *testing.T) {
	runNode(t, harness.Start(withOthers(harness.NewHome(t)), harness.Config{}), "openai", "openai.cjs")
}

// TestClients_ResponsesForNode runs clients/responses.cjs.
func TestClients_ResponsesForNode(t *testing.T) {
	url := harness.StartEverything(t, "streamableHttp")
	runNode(t, harness.Start(harness.NewHome(t), harness.Config{LM: openRemote}), "openai", "responses.cjs", url)
}

// TestClients_AnthropicForNode runs clients/anthropic.cjs.
func TestClients_AnthropicForNode(t *testing.T) {
	runNode(t, harness.Start(harness.NewHome(t), withClaude), "@anthropic-ai/sdk", "anthropic.cjs")
}

// TestClients_AISDKForNode runs clients/ai-sdk.cjs. This version of its provider for Anthropic's API rejects null citations.
func TestClients_AISDKForNode(t *testing.T) {
	url := harness.StartEverything(t, "streamableHttp")
	runNode(t, harness.Start(harness.NewHome(t), harness.Config{LM: openRemote}), "@ai-sdk/anthropic", "ai-sdk.cjs", url)
}

// runNode runs a script of clients/ that needs a library, against a server, with further arguments.
func runNode(t *testing.T, s *harness.Server, library, script string, more ...string) {
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join("clients", script), s.Base}, more...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.User, "NODE_PATH=" + modules}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
