package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestPageChat_FirstVisit: without an engine and a model, each is had by a click, and one can chat.
func TestPageChat_FirstVisit(t *testing.T) {
	t.Parallel()
	h := newHub(t, 0)
	h.put("Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf", harness.ShippedModel(t))
	h.restart()
	c := h.config()
	c.LM = append(c.LM, "memory_budget 4GiB")
	home := harness.NewBareHome(t)
	s := harness.Start(home, c)
	tab := chatTab{harness.OpenPage(t, s.Base, harness.View{Path: "#/chat"})}
	tab.Has("button", "Get llama.cpp")
	tab.WaitText("qwen/qwen3-4b-2507")
	tab.WaitText("qwen/qwen3-1.7b")
	tab.WaitText("Q8_0")
	tab.CheckAccess("a first visit")
	tab.Screenshot("first visit")
	_ = os.Remove(filepath.Join(home.Dir, "runtimes"))
	home.LinkRuntimes() // so that it is there already
	tab.Click("button", "Get llama.cpp")
	tab.WaitNoText("Get the engine")
	tab.Click("button", "Get and chat with qwen/qwen3-0.6b")
	tab.Wait("the model is chosen", `document.querySelector(".model-picker")?.value.startsWith("qwen/qwen3-0.6b")`)
	tab.WaitText("Ask a model")
	tab.asked(capital, 1)
}
