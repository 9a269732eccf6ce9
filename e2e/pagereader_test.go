package e2e

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestPageChat_Markdown: what follows a list with a block of code is no code, and the tags that have no attributes are what they mean.
func TestPageChat_Markdown(t *testing.T) {
	t.Parallel()
	s, _ := withFake(t, nil, harness.Fields{"Answer": harness.Fields{"Pieces": []string{
		"- one\n", "- two\n\n``", "`js\nlet a", " = 1;\n```\n", "\nAfter H<su", "b>2</sub>O<br>and <kbd>Ctrl</kbd> <i onclick=x>no</i>",
	}}})
	tab := openChat(t, s)
	tab.asked("Hello", 1)
	var seen struct{ Kinds, Code, Last string }
	tab.Eval(`((md) => ({ Kinds: [...md.children].map((e) => e.tagName).join(" "), Code: md.querySelector("pre").textContent, Last: md.lastElementChild.innerHTML }))(document.querySelector(".md"))`, &seen)
	if seen.Kinds != "UL DIV P" || seen.Code != "let a = 1;" || seen.Last != "After H<sub>2</sub>O<br>and <kbd>Ctrl</kbd> &lt;i onclick=x&gt;no&lt;/i&gt;" {
		t.Errorf("%+v", seen)
	}
}

// TestPageChat_Parts: code has colours and formulas are shown, by parts of the page that its server has, and nothing in them runs.
func TestPageChat_Parts(t *testing.T) {
	t.Parallel()
	s, _ := withFake(t, nil, harness.Fields{"Answer": harness.Fields{"Text": "```js\nlet a = \"b\"; // c\n```\n\n" + `Let \(x_1\) be` + "\n\n" + `$$\frac{a}{b} \href{javascript:ran=1}{c}$$` + "\n\n" + `\[\frac{a}{b}\label{main}\]`}})
	tab := openChat(t, s)
	tab.Eval(`performance.getEntriesByType("resource").some((e) => e.name.includes("/page/")) && document.body.replaceChildren(), true`, nil)
	tab.asked("Hello", 1)
	tab.Wait("code has colours", `document.querySelector(".md-code .hljs-keyword")?.textContent === "let" && document.querySelector(".md-code .hljs-string")?.textContent === '"b"'`)
	tab.Wait("formulas are shown", `document.querySelectorAll(".md math").length === 2 && document.querySelector(".formula.displayed mfrac") && !document.querySelector(".md [id]")`)
	tab.WaitText(`\href{javascript:ran=1}{c}`)
	tab.CheckAccess("formulas")
	tab.Screenshot("formulas")
}

// TestPageChat_Long: a long conversation opens at its end, of which only what is seen is in the document, and one finds back to it.
func TestPageChat_Long(t *testing.T) {
	t.Parallel()
	s, _ := withFake(t, nil, harness.Fields{"Answer": harness.Fields{"Text": strings.Repeat("A paragraph.\n\n", 12)}})
	first, last := "", ""
	for i := range 60 {
		ask := harness.Fields{"model": harness.Model, "input": fmt.Sprintf("Question %d", i)}
		if last != "" {
			ask["previous_response_id"] = last
		}
		last = gjson.Get(s.Post(harness.NativeChatPath, ask).Want(t, 200).Body, "response_id").Str
		first = cmp.Or(first, last)
	}
	tab := chatTab{harness.OpenPage(t, s.Base, harness.View{Path: "#/chat/" + first})}
	const isAtEnd = `innerHeight + scrollY >= document.documentElement.scrollHeight - 2`
	few := func(what, also string) {
		t.Helper()
		tab.Wait(what, also+` && document.querySelectorAll(".turn").length < 12`)
	}
	tab.WaitText("Question 59")
	few("it is at its end", isAtEnd)
	tab.Wait("the composer has the focus", `document.activeElement.matches(".composer textarea")`)
	tab.Eval(`scrollTo(0, 0), true`, nil)
	tab.WaitText("Question 0")
	few("its end isn't there", `!document.body.innerText.includes("Question 57")`)
	tab.Eval(`scrollTo(0, document.documentElement.scrollHeight / 2), true`, nil)
	few("its middle is there", `[...document.querySelectorAll(".turn")].some((e) => e.getBoundingClientRect().top > 0 && e.getBoundingClientRect().top < innerHeight)`)
	tab.Click("button", "To the end")
	tab.WaitText("Question 59")
	few("it is at its end again", isAtEnd+` && !document.querySelector(".to-end")`)
	tab.ask("One more")
	tab.WaitText("One more")
	tab.Wait("it is complete", `document.querySelector(".turn:last-child .answer")?.getAttribute("aria-busy") === "false"`)
	few("it is at its end", isAtEnd)
}

// TestPageChat_Focus: after each step, the focus is where one goes on.
func TestPageChat_Focus(t *testing.T) {
	t.Parallel()
	s, _ := withFake(t, nil)
	tab := openChat(t, s)
	composer := func(after string) {
		t.Helper()
		tab.Wait("the composer has the focus after "+after, `document.activeElement.matches(".composer textarea")`)
	}
	composer("opening")
	tab.asked("Hello", 1)
	tab.Click("button", "Ask again")
	composer("asking again")
	tab.WaitText("2 / 2")
	tab.answer(1)
	tab.Click("button", "Previous branch")
	tab.WaitText("1 / 2")
	tab.Wait("the arrow has the focus", `document.activeElement.getAttribute("aria-label")?.startsWith("Previous branch")`)
	tab.Click("button", "Edit question")
	tab.Wait("it can be edited", `document.activeElement.matches(".editor textarea")`)
	tab.Press("Escape")
	tab.Wait("the button has the focus again", `document.activeElement.ariaLabel === "Edit question"`)
	tab.Click("button", "Edit question")
	tab.Fill("Edit the question", "Another")
	tab.Click("button", "Ask in a new branch")
	composer("editing")
	tab.answer(1)
	tab.Click("button", "New chat")
	composer("a new chat")
	tab.Click("link", "Models")
	tab.Click("link", "Chat")
	composer("coming back")
}

// TestPageChat_Keys: what is done often is done by the keyboard, and the keys are told.
func TestPageChat_Keys(t *testing.T) {
	t.Parallel()
	s, _ := withFake(t, nil)
	tab := openChat(t, s)
	tab.asked("Hello", 1)
	tab.Press("ArrowUp")
	tab.Wait("the question can be edited", `document.activeElement.matches(".editor textarea") && document.activeElement.value === "Hello"`)
	tab.Press("Escape")
	tab.Do(chromedp.KeyEvent("k", chromedp.KeyModifiers(input.ModifierCtrl)))
	tab.Wait("conversations can be searched", `document.activeElement.matches(".sidebar input")`)
	tab.Do(chromedp.KeyEvent("O", chromedp.KeyModifiers(input.ModifierCtrl|input.ModifierShift)))
	tab.WaitText("Ask a model")
	tab.Wait("the composer has the focus", `document.activeElement.matches(".composer textarea")`)
	tab.Do(chromedp.KeyEvent("?"))
	if got := tab.Value("Question"); got != "?" {
		t.Errorf("it can't be typed: %q", got)
	}
	tab.Eval(`document.querySelector(".model-picker").focus(), true`, nil)
	tab.Do(chromedp.KeyEvent("?"))
	tab.Has("heading", "Keys")
	tab.CheckAccess("the keys")
}
