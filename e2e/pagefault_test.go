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

// withFake returns a server with the fake engine.
func withFake(t *testing.T, lm []string, rules ...harness.Fields) (*harness.Server, *harness.FakeEngine) {
	t.Helper()
	engine := harness.StartFake(t, harness.Fields{"Rules": rules})
	return harness.Start(harness.NewHome(t), harness.Config{Engine: engine.Lines(), LM: lm}), engine
}

// TestPageChat_Stop: thinking and an answer are seen as they come, an answer that is stopped is kept, and the chat goes on from it.
func TestPageChat_Stop(t *testing.T) {
	t.Parallel()
	rules := []harness.Fields{
		{"Contains": "think", "Answer": harness.Fields{"Reasoning": "one two three", "Text": "four five six"}, "Cues": []harness.Fields{{"After": 2, "Gate": "thought"}, {"After": 5, "Gate": "never"}}},
		{"Contains": "wait", "Gate": "never too"},
	}
	s, engine := withFake(t, nil)
	engine.Set(t, harness.Fields{"Rules": rules, "Load": harness.Fields{"Steps": 4, "Gate": "load"}})
	tab := openChat(t, s)
	tab.ask("think")
	tab.WaitText("Loading " + harness.Model)
	tab.Has("progress", "Loading "+harness.Model)
	engine.Release(t, "load")
	tab.Wait("thoughts stream", `document.querySelector(".thinking[open] .plain")?.innerText.trim() === "one two"`)
	tab.WaitText("Thinking…")
	engine.Release(t, "thought")
	tab.Wait("the answer streams", `document.querySelector(".md")?.innerText.trim() === "four five"`)
	tab.Fill("Question", "kept while it runs")
	tab.Press("Enter") // does nothing now
	tab.Press("Escape")
	tab.answer(1)
	tab.WaitText("Stopped.")
	if got := tab.stored(s).Get("responses.0"); got.Get("status").Str != "incomplete" || !strings.HasPrefix(got.Get("output.1.content").Str, "four five") {
		t.Errorf("%s", got.Raw)
	}
	if got := tab.Value("Question"); got != "kept while it runs" {
		t.Errorf("the draft is %q", got)
	}
	engine.Release(t, "never")
	if got := tab.asked("and now?", 2); got != "four five six" { // the conversation has the word think
		t.Errorf("%q", got)
	}
	stored := tab.stored(s)
	if first, next := stored.Get("responses.0.response_id").Str, stored.Get("responses.1.previous_response_id").Str; first != next {
		t.Errorf("%s", stored.Raw)
	}
	tab.Click("button", "New chat")
	tab.ask("wait")
	tab.WaitText("Reading the prompt")
	tab.Click("button", "Stop")
	tab.WaitText("Not stored")
	if n := gjson.Get(s.Get("/api/v1/conversations").Body, "conversations.#").Int(); n != 1 {
		t.Errorf("%d conversations", n)
	}
}

// TestPageChat_Scroll: the page stays at the end of an answer that grows, unless its reader scrolls up.
func TestPageChat_Scroll(t *testing.T) {
	t.Parallel()
	s, engine := withFake(t, nil, harness.Fields{
		"Answer": harness.Fields{"Pieces": []string{"A paragraph.\n\n"}, "Chunks": 240}, "Cues": []harness.Fields{{"After": 80, "Gate": "more"}, {"After": 160, "Gate": "rest"}},
	})
	tab := openChat(t, s)
	paragraphs := func(n int) string { return fmt.Sprintf(`document.querySelectorAll(".md p").length >= %d`, n) }
	const isAtEnd = `innerHeight + scrollY >= document.documentElement.scrollHeight - 2`
	tab.ask("Write.")
	tab.Wait("it is at the end", paragraphs(80)+" && scrollY > 500 && "+isAtEnd)
	engine.Release(t, "more")
	tab.Wait("it is at the end", paragraphs(160)+" && "+isAtEnd)
	tab.Wait("its reader has scrolled up", `Math.round(scrollY) === 300 || (scrollTo(0, 300), false)`) // the page may just follow the last paragraph
	engine.Release(t, "rest")
	tab.answer(1)
	tab.Wait("it is where its reader was", paragraphs(240)+" && Math.round(scrollY) === 300")
}

// TestPageChat_Joins: a reload and another tab join an answer that is being made, also while its model is loaded; each can stop it.
func TestPageChat_Joins(t *testing.T) {
	t.Parallel()
	rule := harness.Fields{"Answer": harness.Fields{"Text": "one two three four"}, "Cues": []harness.Fields{{"After": 2, "Gate": "half"}}}
	s, engine := withFake(t, nil)
	engine.Set(t, harness.Fields{"Rules": []harness.Fields{rule}, "Load": harness.Fields{"Steps": 4, "Gate": "load"}})
	tab := openChat(t, s)
	tab.ask("Count")
	tab.WaitText("Loading " + harness.Model)
	tab.Wait("it has an address", `location.hash.startsWith("#/chat/resp_")`)
	tab.Do(chromedp.Reload())
	tab.WaitText("Loading " + harness.Model)
	if got := tab.Value("Question"); got != "" {
		t.Errorf("the question is in the composer: %q", got)
	}
	var hash string
	tab.Eval(`location.hash`, &hash)
	other := chatTab{harness.OpenPage(t, s.Base, harness.View{Path: hash})}
	engine.Release(t, "load")
	const isHalf = `document.querySelector(".md")?.innerText.trim() === "one two"`
	tab.Wait("half of it is there", isHalf)
	other.Wait("half of it is there", isHalf)
	engine.Release(t, "half")
	for _, tab := range []chatTab{tab, other} {
		if got := tab.answer(1); got != "one two three four" {
			t.Errorf("%q", got)
		}
	}
	engine.Set(t, harness.Fields{"Rules": []harness.Fields{{"Answer": harness.Fields{"Text": "five six seven"}, "Cues": []harness.Fields{{"After": 2, "Gate": "never"}}}}})
	tab.ask("And then?")
	tab.Wait("it is being answered", `document.querySelectorAll(".md")[1]?.innerText.trim() === "five six"`)
	tab.Do(chromedp.Reload())
	tab.Wait("it is joined", `document.querySelectorAll(".md")[1]?.innerText.trim() === "five six"`)
	tab.Press("Escape")
	tab.WaitText("Stopped.")
	if got := tab.stored(s).Get("responses.1"); got.Get("status").Str != "incomplete" || got.Get("output.0.content").Str != "five six" {
		t.Errorf("%s", got.Raw)
	}
}

// TestPageChat_Retry: an error is shown where the answer would be, and its question can be asked again. After a reload, too.
func TestPageChat_Retry(t *testing.T) {
	t.Parallel()
	s, engine := withFake(t, nil, harness.Fields{"Cues": []harness.Fields{{"After": 1, "Do": "fault", "Message": "Out of luck."}}})
	tab := openChat(t, s)
	tab.asked("Hello", 1)
	tab.Has("button", "Retry")
	refusal := `{"error":{"code":400,"message":"No such thing.","type":"invalid_request_error"}}`
	engine.Set(t, harness.Fields{"Rules": []harness.Fields{{"Status": 400, "Body": refusal}}})
	tab.Click("button", "Retry")
	tab.WaitText("No such thing.")
	tab.Do(chromedp.Reload())
	engine.Set(t, harness.Fields{})
	tab.WaitText("The answer failed before it was complete.")
	if got := tab.Value("Question"); got != "" {
		t.Errorf("the question is in the composer, too: %q", got)
	}
	tab.Click("button", "Ask again")
	if got := tab.answer(1); got != "Hello from the fake engine." {
		t.Errorf("%q", got)
	}
	s.Kill()
	tab.ask("Are you there?")
	tab.WaitText("The server can't be reached")
}

// hostileAnswers are what a model may be made to say.
var hostileAnswers = map[string]string{
	"HTML": `<script>globalThis.ran=1;fetch("http://127.0.0.2:9/script")</script><img src=x onerror="globalThis.ran=1"><img src="http://127.0.0.2:9/image.png">
<iframe src="javascript:parent.ran=1"></iframe><style>body{display:none}</style><link rel=stylesheet href="http://127.0.0.2:9/s.css"><base href="http://127.0.0.2:9/">
<meta http-equiv=refresh content="0;url=http://127.0.0.2:9/"><form action="http://127.0.0.2:9/"><button>Send</button></form><svg onload="globalThis.ran=1"><a href="javascript:ran=1">x</a>`,
	"links": "[a](javascript:globalThis.ran=1) [b](data:text/html,<script>ran=1</script>) [c](vbscript:x) [d]( javascript:ran=1) [e](JaVa&#x0a;ScRiPt:ran=1) " +
		"[f](//127.0.0.2:9/x) [g](/api/v1/tokens) [h](#/tokens) <javascript:ran=1> ![i](http://127.0.0.2:9/i.png) ![j](data:image/svg+xml,<svg/onload=ran=1>) " +
		"[![k](http://127.0.0.2:9/k.png)](https://example.com/ok)\n\n[l]: javascript:ran=1\n[l]\n",
	"tricks": "| a |\n|---|\n| <img src=http://127.0.0.2:9/t onerror=ran=1> |\n\n```html\n<script>ran=1</script>\n```\n\n    <script>ran=1</script>\n\n`<script>ran=1</script>`\n\n" +
		"- [x] <b onclick=ran=1>b</b>\n\n1. &lt;script&gt;ran=1&lt;/script&gt;\n\n> <img src=x onerror=ran=1>\n",
	"reordering":      "\u202Etxt.exe\u202C \u2066x\u2069 \u200F\u0000\uFFFE" + strings.Repeat("\u0300", 5000) + "\n\n```\n/*\u202E } \u2066if (isAdmin)\u2069 \u2066 begin admins only */\n```",
	"a long line":     strings.Repeat("a", 1<<20),
	"long words":      strings.Repeat("word ", 1<<18),
	"brackets":        strings.Repeat("[", 200_000) + strings.Repeat("](x)", 50_000),
	"quotes":          strings.Repeat(">", 200_000) + "x",
	"lists":           strings.Repeat("- ", 100_000) + "x",
	"stars":           strings.Repeat("*a **b ", 30_000),
	"many paragraphs": strings.Repeat("*a*\n\n", 50_000),
	"a long table":    "| a | b |\n|---|---|\n" + strings.Repeat("| `x` | **y** |\n", 20_000),
	"a long block":    "```js\n" + strings.Repeat("const x = 1;\n", 80_000),
}

// mostPause is how long the page may not react, in milliseconds, on a machine that other tests keep busy. Where work grows with the square of a
// text's length, it takes minutes.
const mostPause = 20_000

// TestPageChat_Hostile: whatever an answer says, nothing of it runs, nothing is loaded from elsewhere (which the tab's own checks find),
// and the page can be used.
func TestPageChat_Hostile(t *testing.T) {
	t.Parallel()
	var rules []harness.Fields
	for name, text := range hostileAnswers {
		pieces := []string{}
		for len(text) > 0 { // as tokens come, only larger, cut anywhere
			n := min(len(text), 20_000)
			pieces, text = append(pieces, strings.ToValidUTF8(text[:n], "")), text[n:]
		}
		rules = append(rules, harness.Fields{"Contains": "say " + name + ".", "Answer": harness.Fields{"Pieces": pieces, "Reasoning": pieces[0]}})
	}
	s, _ := withFake(t, nil, rules...)
	tab := openChat(t, s)
	for name, text := range hostileAnswers {
		tab.Eval(`globalThis.longest = 0, globalThis.before = performance.now(), (function tick() {
			const now = performance.now(); longest = Math.max(longest, now - before); before = now; globalThis.ticking = setTimeout(tick, 5); })(), true`, nil)
		tab.asked("say "+name+".", 1)
		var seen struct {
			Ran               bool
			Longest, Elements float64
			Bad, Text         string
		}
		tab.Eval(`clearTimeout(ticking), ({
			Ran: "ran" in globalThis, Longest: longest, Elements: document.querySelectorAll(".turn *").length, Text: document.querySelector(".turn .md").textContent.slice(0, 200),
			Bad: [...document.querySelectorAll(".turn script, .turn img, .turn iframe, .turn style, .turn link, .turn base, .turn meta, .turn form, .turn svg:not(.icon), .turn object, .turn [style*=url]")]
				.concat([...document.querySelectorAll(".turn a")].filter((a) => !/^(https?|mailto):$/.test(a.protocol) || (a.origin === location.origin && !a.hash.startsWith("#/requests")) || (a.origin !== location.origin && (a.rel !== "noopener noreferrer" || a.target !== "_blank"))))
				.map((e) => e.outerHTML.slice(0, 200)).join("\n"),
		})`, &seen)
		t.Logf("%s: %d bytes, %.0f elements, the longest pause was %.0f ms", name, len(text), seen.Elements, seen.Longest)
		if seen.Ran || seen.Bad != "" {
			t.Errorf("%s: ran %v; %s", name, seen.Ran, seen.Bad)
		}
		if seen.Text == "" {
			t.Errorf("%s: nothing is shown", name)
		}
		if seen.Elements > 100_000 || seen.Longest > mostPause {
			t.Errorf("%s: %.0f elements, a pause of %.0f ms", name, seen.Elements, seen.Longest)
		}
		tab.Click("button", "New chat")
		tab.WaitText("Ask a model")
	}
	if got := tab.asked("Hello", 1); got != "Hello from the fake engine." {
		t.Errorf("%q", got)
	}
	if status := s.Get("/api/v1/health").Status; status != http.StatusOK {
		t.Errorf("%d", status)
	}
}
