//go:build clients

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestFirefox_Page runs firefox/page.cjs, the main flows of the chat: a question, an answer that streams, a reload amid it, a stop, the choice
// of a model.
func TestFirefox_Page(t *testing.T) {
	program, err := exec.Command("../tools/firefox.sh").Output()
	if err != nil {
		t.Fatalf("there is no Firefox: %v\nRun tools/firefox.sh in the repository's folder; `make clients` does.", err)
	}
	modules, err := filepath.Abs("../.cache/firefox/node_modules")
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "puppeteer-core"))
	}
	if err != nil {
		t.Fatalf("puppeteer-core is missing: %v\nRun `make clients` in the repository's folder.", err)
	}
	engine := harness.StartFake(t, harness.Fields{"Rules": []harness.Fields{
		{"Contains": "count", "Answer": harness.Fields{"Text": "one two three four"}, "Cues": []harness.Fields{{"After": 2, "Gate": "half"}}},
		{"Contains": "forever", "Answer": harness.Fields{"Text": "five six seven"}, "Cues": []harness.Fields{{"After": 2, "Gate": "never"}}},
		{"Answer": harness.Fields{"Text": "Hello there."}},
	}})
	home := harness.NewHome(t)
	home.AddModel("lmcaddy/second", "second-f16.gguf", harness.ShippedModel(t))
	s := harness.Start(home, harness.Config{Engine: engine.Lines()})
	user := t.TempDir() // Firefox writes into it
	script := exec.CommandContext(t.Context(), "node", filepath.Join("firefox", "page.cjs"), s.Base, strings.TrimSpace(string(program)), filepath.Join(filepath.Dir(engine.Path), "gates"))
	script.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + user, "TMPDIR=" + user, "NODE_PATH=" + modules}
	runClient(t, script)
}
