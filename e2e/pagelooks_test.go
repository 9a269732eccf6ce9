package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// rich is an answer with everything that Markdown has.
const rich = `# A heading

Some *emphasis*, **strong** words, ~~old ones~~, ` + "`code`" + `, a [link](https://example.com/) and an image: ![a river](https://example.com/river.png).

- one
  - nested
- [x] done
- [ ] to do

3. three
4. four

> A quote
> of two lines

| Capital | Country | People |
|:--|:-:|--:|
| Paris | France | 2,100,000 |
| Madrid | Spain | 3,300,000 |

` + "```go\nfunc main() {\n\tfmt.Println(\"a line of code that is rather long, so that it has to be scrolled on narrow screens\")\n}\n```" + `

---

The end.`

// TestPageChat_Looks has axe-core check the chat, its settings and its errors in each size and colour.
func TestPageChat_Looks(t *testing.T) {
	t.Parallel()
	s, engine := withFake(t, []string{"preset careful {", "\ttemperature 0", "}"},
		harness.Fields{"Contains": "fail", "Cues": []harness.Fields{{"After": 1, "Do": "fault", "Message": "Out of luck."}}},
		harness.Fields{"Contains": "more", "Cues": []harness.Fields{{"After": 3, "Gate": "never"}}, "Answer": harness.Fields{"Reasoning": "I have to think about this.", "Text": "It is"}},
		harness.Fields{"Answer": harness.Fields{"Reasoning": "They want to see everything.", "Text": rich}},
	)
	tab := openChat(t, s)
	tab.Look("chat-empty")
	tab.asked("Show everything.", 1)
	tab.WaitText("tokens/s")
	tab.Look("chat-rich")
	tab.Click("button", "Ask again")
	tab.WaitText("2 / 2")
	tab.answer(1)
	tab.tuned(func() {
		tab.Click("checkbox", "Store the conversation")
		tab.Look("chat-settings")
	})
	tab.ask("Think more.")
	tab.WaitText("Thinking…")
	tab.Look("chat-thinking")
	engine.Release(t, "never")
	tab.answer(2)
	tab.Click("button", "New chat")
	tab.ask("Please fail.")
	tab.Has("button", "Retry")
	tab.Look("chat-failed", 390, 1440)
}

// TestPageActivity_Looks has axe-core check the views of what happens, with something in them, in each size and colour.
func TestPageActivity_Looks(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), guarded)
	admin := created(t, s.Home, "--name", "boss", "--scopes", "admin")
	created(t, s.Home, "--name", "guests", "--scopes", "inference", "--expires", "30d", "--requests-per-minute", "20")
	tab := openAs(t, s, admin, "#/conversations")
	for _, view := range []string{"conversations", "requests", "usage", "logs?level=error"} {
		tab.Go("#/" + view)
		tab.Wait("it is loaded", `document.querySelector("main h1") && !document.querySelector(".loading")`)
		name, _, _ := strings.Cut(view, "?")
		tab.Look(name+"-empty", 390, 1440)
	}
	for range 3 {
		s.As(admin).Post(harness.NativeChatPath, harness.NativeAsk(capital)).Want(t, http.StatusOK)
	}
	s.As(admin).Post("/v1/chat/completions", harness.Fields{"model": "nosuch", "messages": []any{}}).Want(t, http.StatusNotFound)
	for view, sign := range map[string]string{
		"conversations": `document.querySelectorAll("tbody tr").length === 3`, "requests": `document.querySelectorAll("tbody tr").length === 4`,
		"logs?level=debug": `document.querySelectorAll(".log-line").length > 5`, "usage": `document.querySelector(".plot canvas")`,
		"tokens": `document.querySelectorAll("tbody tr").length === 2`,
	} {
		tab.Go("#/" + view)
		tab.Wait("it shows something", sign)
		name, _, _ := strings.Cut(view, "?")
		tab.Look(name)
	}
	tab.Go("#/tokens")
	tab.Click("button", "Create token")
	tab.Look("tokens-create", 390, 1440)
}
