package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestPageChat_Conversations: beside the chat, or in a dialog where there is little room, conversations are found, opened, named, pinned and deleted.
func TestPageChat_Conversations(t *testing.T) {
	t.Parallel()
	s, _ := withFake(t, nil)
	for _, about := range []string{"cats", "dogs", "birds", "fish"} {
		s.Post(harness.NativeChatPath, harness.Fields{"model": harness.Model, "input": "All about " + about}).Want(t, http.StatusOK)
	}
	tab := openChat(t, s)
	listed := func(want ...string) {
		t.Helper()
		tab.Wait(fmt.Sprintf("%q are listed", want), fmt.Sprintf(`[...document.querySelectorAll(".sidebar li a")].map((e) => e.textContent).join("|") === %q`, strings.Join(want, "|")))
	}
	listed("All about fish", "All about birds", "All about dogs", "All about cats")
	tab.Fill("Search conversations", "DOGS")
	listed("All about dogs")
	tab.Fill("Search conversations", "")
	tab.Click("button", "Change All about cats")
	tab.Fill("Title", "Felines")
	tab.Press("Enter")
	listed("All about fish", "All about birds", "All about dogs", "Felines")
	tab.Click("button", "Change All about dogs")
	tab.Click("button", "Pin")
	listed("All about dogs", "All about fish", "All about birds", "Felines")
	tab.Look("chat-conversations", 1440)
	tab.Click("link", "Felines")
	tab.WaitText("All about cats")
	tab.Wait("it is marked", `document.querySelector(".sidebar [aria-current]")?.textContent === "Felines"`)
	tab.Click("button", "New chat")
	tab.Click("link", "Felines") // again
	tab.WaitText("All about cats")
	tab.asked("And their food?", 2)
	listed("All about dogs", "Felines", "All about fish", "All about birds")
	tab.Click("button", "Delete several")
	tab.Click("checkbox", "Choose All about fish")
	tab.Click("checkbox", "Choose All about birds")
	tab.Click("button", "Delete 2")
	tab.Has("heading", "Delete 2 conversations?")
	tab.Click("button", "Delete")
	listed("All about dogs", "Felines")
	if got := gjson.Get(s.Get("/api/v1/conversations").Body, "conversations.#").Int(); got != 2 {
		t.Errorf("%d conversations", got)
	}
	tab.Go("#/conversations") // another one is opened from there
	tab.Click("link", "All about dogs")
	tab.Wait("it is shown", `document.querySelector(".turn .question")?.innerText.includes("All about dogs")`)
	tab.Click("link", "Felines")
	tab.WaitText("And their food?")
	tab.Click("button", "New chat") // it gets a title by the model
	tab.tuned(func() { tab.Click("checkbox", "Titles by the model") })
	tab.asked("Who are you?", 1)
	listed("All about dogs", "Hello from the fake engine", "Felines")
	tab.Eval(`URL.createObjectURL = ((make) => (blob) => (globalThis.saved = blob, make.call(URL, blob)))(URL.createObjectURL), true`, nil)
	tab.Click("button", "Export all")
	tab.Click("button", "Save JSON")
	tab.Wait("it is saved", `globalThis.saved`)
	var saved string
	tab.Eval(`saved.text()`, &saved)
	tab.Click("button", "Export all")
	tab.Click("button", "Save Markdown")
	tab.Wait("it is saved", `saved.type === "text/markdown"`)
	var markdown string
	tab.Eval(`saved.text()`, &markdown)
	if !strings.Contains(markdown, "# Felines\n\n## Question\n\nAll about cats\n") {
		t.Errorf("%s", markdown)
	}
	tab.Do(chromedp.SetUploadFiles(`input[accept]`, []string{s.WriteFile("all.json", saved)}, chromedp.ByQuery))
	listed("All about dogs", "All about dogs", "Hello from the fake engine", "Hello from the fake engine", "Felines", "Felines")
	tab.Show(harness.View{Width: 390, Height: 844})
	tab.Click("button", "Show conversations")
	listed("All about dogs", "All about dogs", "Hello from the fake engine", "Hello from the fake engine", "Felines", "Felines")
	tab.Look("chat-drawer", 390)
	tab.Show(harness.View{Width: 390, Height: 844})
	tab.Click("link", "All about dogs")
	tab.Wait("the dialog is closed", `!document.querySelector("dialog[open]")`)
	tab.WaitText("Hello from the fake engine.")
}
