package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// importTurns stores a conversation of questions, each with the same answer, and returns its address in the page.
func importTurns(t testing.TB, s *harness.Server, number int, answer string) (path string) {
	t.Helper()
	var responses []harness.Fields
	for i := range number {
		response := harness.Fields{
			"response_id": fmt.Sprint(i), "model": harness.Model, "status": "completed", "input": []harness.Fields{{"type": "message", "content": fmt.Sprintf("Question %d", i)}},
			"output": []harness.Fields{{"type": "message", "content": answer}},
		}
		if i > 0 {
			response["previous_response_id"] = fmt.Sprint(i - 1)
		}
		responses = append(responses, response)
	}
	return "#/chat/" + gjson.Get(s.Post("/api/v1/conversations", harness.Fields{"responses": responses}).Want(t, 200).Body, "id").Str
}

// TestPageChat_Long: a long conversation opens at its end, of which only what is seen is in the document, one finds back to it, and neither it nor
// many models keep the page from answering for long.
func TestPageChat_Long(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("A paragraph.\n\n", 12)
	engine := harness.StartFake(t, harness.Fields{"Rules": []harness.Fields{{"Answer": harness.Fields{"Text": text}}}})
	home := harness.NewHome(t)
	manyModels(home, 300)
	s := harness.Start(home, harness.Config{Engine: engine.Lines()})
	tab := chatTab{harness.OpenPage(t, s.Base, harness.View{Path: importTurns(t, s, 500, text)})}
	const isAtEnd = `innerHeight + scrollY >= document.documentElement.scrollHeight - 2`
	few := func(what, also string) {
		t.Helper()
		tab.Wait(what, also+` && document.querySelectorAll(".turn").length < 12`)
	}
	tab.WaitText("Question 499")
	few("it is at its end", isAtEnd)
	tab.Wait("the composer has the focus", `document.activeElement.matches(".composer textarea")`)
	tab.Eval(`scrollTo(0, 0), true`, nil)
	tab.WaitText("Question 0")
	few("its end isn't there", `!document.body.innerText.includes("Question 497")`)
	tab.Eval(`scrollTo(0, document.documentElement.scrollHeight / 2), true`, nil)
	few("its middle is there", `[...document.querySelectorAll(".turn")].some((e) => e.getBoundingClientRect().top > 0 && e.getBoundingClientRect().top < innerHeight)`)
	tab.Click("button", "To the end")
	tab.WaitText("Question 499")
	few("it is at its end again", isAtEnd+` && !document.querySelector(".to-end")`)
	asked := 0
	tab.quick("a question", func() {
		asked++
		question := fmt.Sprintf("One more: %d", asked)
		tab.ask(question)
		tab.WaitText(question)
		tab.Wait("it is complete", `document.querySelector(".turn:last-child .answer")?.getAttribute("aria-busy") === "false"`)
	})
	few("it is at its end", isAtEnd)
	tab.quick("the choice of one of 300 models", func() {
		tab.Click("button", "Model: ")
		tab.Wait("a search can be typed", `document.activeElement.matches("dialog[open] input")`)
		for _, letter := range "other-299" {
			tab.Do(chromedp.KeyEvent(string(letter)))
		}
		tab.Wait("one is left", `document.querySelectorAll("dialog[open] li").length === 1`)
		tab.Press("Enter")
		tab.Wait("it is chosen", `document.querySelector(".model-picker").value === "acme/other-299"`)
	})
}

// manyModels gives a home further models, which are links to the shipped one.
func manyModels(home *harness.Home, number int) {
	first := home.AddModel("acme/other-000", "other-000.gguf", harness.ShippedModel(home.T))
	for i := 1; i < number; i++ {
		name := fmt.Sprintf("other-%03d", i)
		folder := filepath.Join(filepath.Dir(filepath.Dir(first)), name)
		if err := errors.Join(os.MkdirAll(folder, 0o700), os.Link(first, filepath.Join(folder, name+".gguf"))); err != nil {
			home.T.Fatal(err)
		}
	}
}

// quick does something, during which the page has no task of more than 200 ms. Other tests make tasks longer by keeping the processors from the
// page, by as much as they make a loop longer that always does the same.
func (c chatTab) quick(what string, do func()) {
	c.T.Helper()
	c.Eval(`globalThis.longTasks ??= (() => {
		const found = [];
		new PerformanceObserver((list) => found.push(...list.getEntries())).observe({ type: "longtask" });
		return found;
	})(), globalThis.slowness ??= () => {
		const took = [];
		for (let n = 0; n < 60; n++) {
			const begun = performance.now();
			for (let i = 0, x = 0; i < 2e6; i++) x += i % 7;
			took.push(performance.now() - begun);
		}
		const warm = took.slice(10);
		return warm.reduce((all, one) => all + one) / warm.length / Math.min(...warm);
	}, true`, nil)
	var longest, before, after float64
	for range 5 {
		c.Eval(`slowness()`, &before)
		c.Eval(`globalThis.since = performance.now(), true`, nil)
		do()
		c.Eval(`Math.max(0, ...longTasks.filter((e) => e.startTime >= since).map((e) => e.duration))`, &longest)
		c.Eval(`slowness()`, &after)
		slower := max(1, before, after)
		c.T.Logf("%s: the longest task took %.0f ms, where all takes %.1f times as long", what, longest, slower)
		if longest <= 200*slower {
			return
		}
	}
	c.T.Errorf("%s: a task takes %.0f ms", what, longest)
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
