package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestPage_LongNames: no name, path or text makes the page wider than the smallest window, or than any other.
func TestPage_LongNames(t *testing.T) {
	t.Parallel()
	engine := harness.StartFake(t, harness.Fields{"Rules": []harness.Fields{{"Answer": harness.Fields{"Text": strings.Repeat("Pneumono", 60)}}}})
	home := harness.NewHome(t)
	name := strings.Repeat("averylongname", 15)
	home.AddModel("somebody/"+name, name+".gguf", harness.ShippedModel(t))
	s := harness.Start(home, harness.Config{Engine: engine.Lines()})
	key := "somebody/" + name
	s.Post("/api/v1/models/load", harness.Fields{"model": key}).Want(t, 200)
	s.Post(harness.NativeChatPath, harness.Fields{"model": key, "input": strings.Repeat("question", 60)}).Want(t, 200)
	tab := chatTab{harness.OpenPage(t, s.Base, harness.View{Path: "#/chat?model=" + key, Width: 320, Height: 640})}
	tab.WaitText("averylongname")
	tab.asked(strings.Repeat("question", 60), 1)
	narrow := func(view string) {
		t.Helper()
		for _, width := range []int{320, 1280} {
			tab.Show(harness.View{Width: width, Height: 640})
			var wide string
			tab.Eval(fmt.Sprintf(`document.documentElement.scrollWidth <= %d ? "" : document.documentElement.scrollWidth + ": " + [...document.querySelectorAll("body *")]
				.filter((e) => e.getBoundingClientRect().right > %[1]d && !e.closest(".table, pre, .segments")).slice(0, 3).map((e) => e.outerHTML.slice(0, 120)).join("\n")`, width), &wide)
			if wide != "" {
				t.Errorf("%s is wider than %d: %s", view, width, wide)
			}
		}
		tab.Show(harness.View{Width: 320, Height: 640})
	}
	narrow("chat")
	for _, view := range []string{"status", "conversations", "models", "models/" + strings.ReplaceAll(key, "/", "%2F"), "downloads", "memory", "warm", "requests", "usage", "mcp", "settings"} {
		tab.Go("#/" + view)
		tab.Wait("it is loaded", `!document.querySelector(".loading")`)
		narrow(view)
	}
}
