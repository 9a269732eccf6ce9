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
	tab.Look("chat-first", 390, 1440)
	for view, sign := range map[string]string{"status": "No model is loaded", "models": "There are no models yet", "memory": "No model is loaded", "downloads": "Find a model"} {
		tab.Go("#/" + view)
		tab.WaitText(sign)
		tab.Look(view+"-empty", 390, 1440)
	}
	tab.Go("#/chat")
	tab.Has("button", "Get llama.cpp")
	_ = os.Remove(filepath.Join(home.Dir, "runtimes"))
	home.LinkRuntimes() // so that it is there already
	tab.Click("button", "Get llama.cpp")
	tab.WaitNoText("Get the engine")
	tab.Click("button", "Get and chat with qwen/qwen3-0.6b")
	tab.Wait("the model is chosen", `document.querySelector(".model-picker")?.value.startsWith("qwen/qwen3-0.6b")`)
	tab.WaitText("Ask a model")
	tab.asked(capital, 1)
}
