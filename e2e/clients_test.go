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

// nodeModules is where tools/node.sh has installed the libraries, unless NODE_MODULES names another folder.
const nodeModules = "../.cache/clients/node_modules"

// TestClients_OpenAIForNode runs clients/openai.cjs.
func TestClients_OpenAIForNode(t *testing.T) {
	modules := os.Getenv("NODE_MODULES")
	if modules == "" {
		modules = nodeModules
	}
	modules, err := filepath.Abs(modules)
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "openai"))
	}
	if err != nil {
		t.Fatalf("the client libraries are missing: %v\nRun tools/node.sh .cache/clients in the repository's folder; `make test` does.", err)
	}
	s := harness.Start(withOthers(harness.NewHome(t)), harness.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join("clients", "openai.cjs"), s.Base)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.User, "NODE_PATH=" + modules}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
