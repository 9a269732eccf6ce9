package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// chatTab is a tab with the chat.
type chatTab struct{ *harness.Tab }

func openChat(t *testing.T, s *harness.Server) chatTab {
	t.Helper()
	tab := chatTab{harness.OpenPage(t, s.Base, harness.View{Path: "#/chat"})}
	tab.Wait("a model is chosen", `document.querySelector(".model-picker")?.value`)
	return tab
}

// choose chooses the model that is asked.
func (c chatTab) choose(model string) {
	c.T.Helper()
	c.Click("button", "Model: ")
	c.Has("heading", "Choose a model")
	c.Fill("Search", model)
	c.Press("Enter")
	c.Wait("it is chosen", fmt.Sprintf(`document.querySelector(".model-picker").value === %q`, model))
}

// signIn has the tab use a token, as after it was typed in.
func signIn(tab *harness.Tab, token string) {
	tab.T.Helper()
	tab.Eval(fmt.Sprintf(`sessionStorage.setItem("lmcaddy.token", %q), true`, token), nil)
	tab.Do(chromedp.Reload())
}

// ask types a question and sends it with Enter.
func (c chatTab) ask(question string) {
	c.T.Helper()
	c.Fill("Question", question)
	c.Press("Enter")
}

// asked asks, and waits until the nth turn that is shown is complete.
func (c chatTab) asked(question string, n int) (answer string) {
	c.T.Helper()
	c.ask(question)
	return c.answer(n)
}

// answer waits until the nth turn that is shown is complete and the last one, and returns its message.
func (c chatTab) answer(n int) (answer string) {
	c.T.Helper()
	c.Wait(fmt.Sprintf("answer %d is complete", n), fmt.Sprintf(`document.querySelectorAll(".turn").length === %[1]d &&
		document.querySelector(".turn:nth-child(%[1]d) .answer")?.getAttribute("aria-busy") === "false"`, n))
	c.Eval(fmt.Sprintf(`[...document.querySelectorAll(".turn:nth-child(%d) .md")].map((e) => e.innerText).join("\n").trim()`, n), &answer)
	return answer
}

// tuned opens the chat's settings, has them changed, and closes them.
func (c chatTab) tuned(change func()) {
	c.T.Helper()
	c.Click("button", "Settings")
	c.Wait("there are settings", `document.querySelector("dialog[open]")`)
	change()
	c.Click("button", "Done")
	c.Wait("the settings are closed, and the focus is back", `!document.querySelector("dialog[open]") && document.activeElement.textContent.trim() === "Settings"`)
}

// stored is the conversation that the tab's address names, with all branches.
func (c chatTab) stored(s *harness.Server) gjson.Result {
	c.T.Helper()
	var id string
	c.Wait("the conversation has an address", `location.hash.startsWith("#/chat/resp_")`)
	c.Eval(`location.hash.slice("#/chat/".length)`, &id)
	return gjson.Parse(s.Get("/api/v1/conversations/"+id+"?branches=true").Want(c.T, http.StatusOK).Body)
}

const (
	franceIs = "The capital of France is Paris."
	spainIs  = "The capital of Spain is Madrid."
)

// TestPageChat_Branches asks a real model, edits the question, asks again, goes from branch to branch, and finds all of it after a reload.
func TestPageChat_Branches(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	tab := openChat(t, s)
	tab.tuned(func() { tab.Fill("Temperature", "0") })
	if got := tab.asked(capital, 1); got != franceIs {
		t.Fatalf("%q", got)
	}
	tab.Wait("thoughts are folded", `document.querySelector(".thinking summary")?.innerText === "Thoughts" && !document.querySelector(".thinking").open`)
	tab.Click("button", "Thoughts")
	tab.Wait("thoughts are shown", `document.querySelector(".thinking .plain")?.innerText.length > 5`)
	tab.Wait("there are figures", `/tokens\/s.*first token after.*\d+ tokens in.*\d+ out \(\d+ thoughts\).*loaded in/s.test(document.querySelector(".figures")?.innerText)`)
	tab.Wait("a screen reader hears of it", `[...document.querySelectorAll("[role=status]")].some((e) => e.textContent.includes("The answer is complete. `+franceIs+`"))`)
	if got := tab.asked("What is the capital of Spain?", 2); got != spainIs {
		t.Fatalf("%q", got)
	}
	tab.WaitText("cached)")

	tab.ClickIn("What is the capital of Spain?", "Edit question")
	tab.Wait("it can be edited", `document.activeElement.matches(".editor textarea")`)
	tab.Press("Escape")
	tab.Wait("nothing is edited", `!document.querySelector(".editor")`)
	tab.ClickIn("What is the capital of Spain?", "Edit question")
	tab.Fill("Edit the question", "My name is Ada.")
	tab.Click("button", "Ask in a new branch")
	if got := tab.answer(2); !strings.Contains(got, "Ada") {
		t.Errorf("%q", got)
	}
	tab.WaitText("2 / 2")
	tab.ClickIn("My name is Ada.", "Ask again")
	tab.WaitText("3 / 3")
	tab.answer(2)
	tab.Click("button", "Previous branch")
	tab.WaitText("2 / 3")
	tab.Click("button", "Previous branch")
	tab.WaitText("1 / 3")
	tab.WaitText(spainIs)

	stored := tab.stored(s)
	if n := stored.Get("responses.#").Int(); n != 4 {
		t.Errorf("%d responses are stored: %s", n, stored.Raw)
	}
	tab.Do(chromedp.Reload())
	tab.WaitText("3 / 3") // the newest branch
	tab.Click("button", "Previous branch")
	tab.Click("button", "Previous branch")
	tab.WaitText(spainIs)
	if got := tab.asked(capital, 3); got != franceIs {
		t.Errorf("%q", got)
	}
	if last := tab.stored(s).Get("responses.4"); last.Get("previous_response_id").Str != stored.Get("responses.1.response_id").Str {
		t.Errorf("it continues another response: %s", last.Raw)
	}

	// A branch of the first question is a conversation of its own.
	tab.Click("button", "Ask again")
	tab.answer(1)
	if other := tab.stored(s); other.Get("id").Str == stored.Get("id").Str || other.Get("responses.#").Int() != 1 {
		t.Errorf("%s", other.Raw)
	}
	tab.Click("button", "New chat")
	tab.WaitText("Ask a model")
	tab.Wait("the address names no conversation", `location.hash === "#/chat"`)
	tab.continued(s)
}

// continued cuts an answer, has the model go on with it, edits it and asks another model.
func (c chatTab) continued(s *harness.Server) {
	c.T.Helper()
	c.tuned(func() {
		c.Choose("Thinking", "off")
		c.Fill("Longest answer", "3")
	})
	cut := c.asked(capital, 1)
	c.WaitText("Cut short by the limit of tokens.")
	c.tuned(func() { c.Fill("Longest answer", "") })
	c.Do(chromedp.Reload())
	c.Click("button", "Continue")
	c.Wait("the answer is whole", fmt.Sprintf(`document.querySelector(".turn .md")?.innerText.trim() === %q && !document.body.innerText.includes("1 / 2")`, franceIs))
	if n := c.stored(s).Get("responses.#").Int(); n != 1 || !strings.HasPrefix(franceIs, cut) {
		c.T.Errorf("%d responses are stored, and %q was continued", n, cut)
	}
	c.Do(chromedp.Reload())
	c.Wait("there are figures", `/tokens\/s.*first token after.*\d+ % of context/s.test(document.querySelector(".figures")?.innerText)`)

	before := c.stored(s).Get("id").Str
	c.Click("button", "Edit answer")
	c.Fill("Edit the answer", "It is Lyon.")
	c.Click("button", "Save in a new branch")
	c.WaitText("2 / 2")
	c.Wait("the branch has an address", fmt.Sprintf(`!location.hash.includes(%q)`, before))
	c.Do(chromedp.Reload())
	c.WaitText("It is Lyon.")
	c.Click("button", "Ask another model")
	c.Has("heading", "Ask another model")
	c.Fill("Search", harness.Model)
	c.Press("Enter")
	c.WaitText("2 / 2")
	if got := c.answer(1); got != franceIs {
		c.T.Errorf("%q", got)
	}
}

// TestPageChat_Settings checks that what is chosen reaches the server.
func TestPageChat_Settings(t *testing.T) {
	t.Parallel()
	preset := []string{"inspect 20", "preset careful {", "\ttemperature 0", "\tsystem_prompt \"Answer briefly.\"", "}"}
	s := harness.Start(harness.NewHome(t), harness.Config{LM: preset})
	admin := s.As(created(t, s.Home, "--name", "admin", "--scopes", "admin"))
	tab := openChat(t, s)
	tab.tuned(func() {
		tab.Fill("Temperature", "7")
		tab.WaitText("Enter 1 or less.")
		tab.Fill("Temperature", "0")
		tab.Fill("Seed", "42")
		tab.Fill("Longest answer", "9")
		tab.Fill("System prompt", "Be brief.")
		tab.Fill("Stop strings", "river")
		tab.Fill("Logit bias", "no")
		tab.WaitText("Enter JSON, such as")
		tab.Fill("Logit bias", `{"1": -1}`)
		tab.Choose("Preset", "careful")
		tab.Choose("Thinking", "off")
		tab.Click("checkbox", "Store the conversation")
	})
	for _, chip := range []string{"Not stored", "careful", "System prompt", "Thinking off", "5 parameters"} {
		tab.WaitText(chip)
	}
	tab.asked(capital, 1)
	tab.WaitText("Not stored: later questions")
	sent := gjson.Parse(lastRequest(t, admin).Get("request.body").Str)
	for path, want := range map[string]string{
		"temperature": "0", "seed": "42", "max_output_tokens": "9", "system_prompt": "Be brief.", "stop": `["river"]`, "logit_bias": `{"1":-1}`, "preset": "careful",
		"reasoning": "off", "store": "false", "background": "", "model": harness.Model, "input": capital, "stream": "true",
	} {
		if got := sent.Get(path).String(); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if n := gjson.Get(s.Get("/api/v1/conversations").Body, "conversations.#").Int(); n != 0 {
		t.Errorf("%d conversations are stored", n)
	}
	tab.tuned(func() {
		tab.Fill("Save all of this as", "Rivers")
		tab.Click("button", "Save")
		tab.Click("button", "Reset all")
		tab.Choose("Saved settings", "Rivers")
		tab.Wait("they are back", `[...document.querySelectorAll("dialog textarea")].some((e) => e.value === "river")`)
		tab.Click("button", "Forget Rivers")
		tab.CheckAccess("the settings")
		tab.Click("button", "Reset all")
	})
	tab.Click("button", "Model: ")
	tab.WaitText("Loaded")
	tab.Press("Escape")
	tab.Fill("Question", "What is the")
	tab.Do(chromedp.KeyEvent("\r", chromedp.KeyModifiers(input.ModifierShift)), input.InsertText("capital of France?"))
	if got := tab.Value("Question"); got != "What is the\ncapital of France?" {
		t.Errorf("%q", got)
	}
	tab.Press("Enter")
	tab.answer(2)
	if sent := lastRequest(t, admin).Get("request.body").Str; strings.Contains(sent, "Be brief") || !strings.Contains(sent, `"background":true`) {
		t.Errorf("%s", sent)
	}
	tab.Eval(`URL.createObjectURL = ((make) => (blob) => (globalThis.saved = blob, make.call(URL, blob)))(URL.createObjectURL), true`, nil)
	tab.Click("button", "Export")
	tab.Click("button", "Save Markdown")
	var saved string
	tab.Eval(`saved.text()`, &saved)
	if !strings.HasPrefix(saved, "## System prompt\n\nBe brief.\n\n## Question\n\n"+capital+"\n\n## Answer (lmcaddy/tinychat)\n\n") {
		t.Errorf("%s", saved)
	}
	tab.Click("button", "Export")
	tab.Click("button", "Save JSON")
	tab.Eval(`saved.text()`, &saved)
	if all := gjson.Get(saved, "conversations.0.responses"); all.Get("#").Int() != 2 || all.Get("0.input.0.content").Str != capital {
		t.Errorf("%s", saved)
	}
}

// lastRequest is the newest request that the server keeps, whole.
func lastRequest(t testing.TB, s *harness.Server) gjson.Result {
	t.Helper()
	id := gjson.Get(s.Get("/api/v1/requests?limit=1").Want(t, http.StatusOK).Body, "requests.0.id").Str
	return gjson.Parse(s.Get("/api/v1/requests/"+id).Want(t, http.StatusOK).Body)
}

// bringImage pastes or drops a small image into the composer.
const bringImage = `((kind) => {
	const bytes = Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="), (c) => c.charCodeAt(0));
	const data = new DataTransfer();
	data.items.add(new File([bytes], "small.png", { type: "image/png" }));
	const event = kind === "paste"
		? new ClipboardEvent(kind, { clipboardData: data, bubbles: true, cancelable: true })
		: new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
	document.querySelector(".composer textarea").dispatchEvent(event);
	return true;
})`

// TestPageChat_Images sends images to a model that sees: chosen, pasted and dropped ones. A large one is made smaller.
func TestPageChat_Images(t *testing.T) {
	t.Parallel()
	s := harness.Start(withVision(t), harness.Config{})
	tab := openChat(t, s)
	upload := func(name, content string) {
		tab.Do(chromedp.SetUploadFiles(`.composer input[type=file]`, []string{s.WriteFile(name, content)}, chromedp.ByQuery))
	}
	tab.choose(harness.Model)
	tab.Eval(bringImage+`("paste")`, nil)
	tab.WaitText("can't see images")
	tab.choose(visionModel)
	upload("large.png", redPicture(t, 3000, 1500))
	tab.Has("button", "Remove image 1")
	tab.Eval(bringImage+`("paste")`, nil)
	tab.Has("button", "Remove image 2")
	tab.Eval(bringImage+`("drop")`, nil)
	tab.Has("button", "Remove image 3")
	tab.Click("button", "Remove image 3")
	tab.Click("button", "Remove image 2")
	tab.Do(chromedp.Reload())
	tab.Has("button", "Remove image 1") // what wasn't sent outlives a reload
	tab.tuned(func() { tab.Fill("Temperature", "0") })
	if got := tab.asked("Say:", 1); !strings.Contains(strings.ToLower(got), "red") {
		t.Errorf("%q", got)
	}
	data := tab.stored(s).Get(`responses.0.input.#(type=="image").data_url`).Str
	_, encoded, _ := strings.Cut(data, ",")
	content, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	config, kind, err := image.DecodeConfig(bytes.NewReader(content))
	if err != nil || config.Width != 2048 || config.Height != 1024 {
		t.Errorf("%v: %s of %d by %d", err, kind, config.Width, config.Height)
	}
	upload("notes.txt", "the secret word is pear")
	tab.WaitText("notes.txt about 7 tokens")
	tab.asked("What is it?", 2)
	tab.Click("button", "notes.txt")
	tab.WaitText("the secret word is pear")
	if got := tab.stored(s).Get(`responses.1.input.0.content`).Str; got != "What is it?\n\n<file name=\"notes.txt\">\nthe secret word is pear\n</file>" {
		t.Errorf("%q", got)
	}
	upload("letter.pdf", pdfOf("Dear Ada, the meeting is at noon."))
	tab.WaitText("letter.pdf about 10 tokens")
	tab.WaitText("of context.")
	upload("long.csv", strings.Repeat("one,two,three\n", 40_000))
	tab.WaitText("That is too much")
	tab.Click("button", "Remove long.csv")
	tab.asked("When is it?", 3)
	if got := tab.stored(s).Get(`responses.2.input.0.content`).Str; got != "When is it?\n\n<file name=\"letter.pdf\">\nDear Ada, the meeting is at noon.\n</file>" {
		t.Errorf("%q", got)
	}
	upload("scan.pdf", pdfOf(""))
	tab.WaitText("scan.pdf has no text")
	upload("no.pdf", "this is none")
	tab.WaitText("isn't a PDF that this page can read")
	upload("no.bin", "\xff\x00")
	tab.WaitText("isn't a text that this page can read")
	upload("no.png", "this is no image")
	tab.WaitText("isn't an image that this browser can read")
}

// pdfOf is a PDF with a text on its only page.
func pdfOf(text string) string {
	content := "BT /F1 12 Tf 72 700 Td (" + text + ") Tj ET"
	return "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\n" +
		"3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 5 0 R>>>>/Contents 4 0 R>> endobj\n" +
		fmt.Sprintf("4 0 obj <</Length %d>> stream\n%s\nendstream endobj\n", len(content), content) +
		"5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj\ntrailer <</Root 1 0 R/Size 6>>\n%%EOF\n"
}

func redPicture(t testing.TB, width, height int) string {
	t.Helper()
	picture := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range picture.Pix {
		if i%4 == 0 || i%4 == 3 {
			picture.Pix[i] = 255
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPageChat_Tools has a model use tools of an MCP server: all of them, then only some. A call that fails is shown, too.
func TestPageChat_Tools(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	home.WriteMCP(harness.Fields{
		"everything": harness.Fields{"command": "node", "args": []string{harness.MCPScript(t, harness.Everything)}},
		"nowhere":    harness.Fields{"command": "/nonexistent/server"},
	})
	s := harness.Start(home, harness.Config{LM: []string{"allow plugin_mcp"}})
	token := created(t, home, "--name", "tools", "--scopes", "models.read,inference,mcp.plugin")
	tab := openChat(t, s)
	tab.tuned(func() { tab.WaitText("This needs a token with the scope mcp.plugin.") })
	signIn(tab.Tab, token)
	tab.Wait("a model is chosen", `document.querySelector(".model-picker")?.value`)
	tab.tuned(func() {
		tab.Fill("Temperature", "0")
		tab.Choose("Thinking", "off")
		tab.Click("checkbox", "everything")
	})
	tab.WaitText("everything")
	if got := tab.asked(useEchoTool, 1); !strings.Contains(got, "hello world") {
		t.Errorf("%q", got)
	}
	tab.Wait("the call is shown", `/echo\s+mcp\/everything\s+\{"message":"hello world"\}\s+done/.test(document.querySelector(".call summary").innerText)`)
	tab.Click("button", "echo")
	tab.WaitText("Echo: hello world")
	tab.CheckAccess("a call")
	tab.Screenshot("call")

	tab.Click("button", "New chat")
	tab.tuned(func() {
		tab.Click("button", "All tools")
		tab.Wait("its tools are listed", `document.querySelectorAll(".tools input").length > 5`)
		tab.Eval(`document.querySelectorAll(".tools input:checked").forEach((e) => e.closest(".checkbox").querySelector("label").textContent === "get-sum" || e.click()), true`, nil)
		tab.WaitText("1 tool")
	})
	tab.asked(useSum, 1)
	tab.Wait("the call is shown", `/get-sum.*"a":20.*done/s.test(document.querySelector(".call summary").innerText)`)

	tab.approved()
	tab.Click("button", "New chat")
	tab.tuned(func() {
		tab.Click("checkbox", "everything")
		tab.Click("checkbox", "nowhere")
	})
	tab.ask(useEchoTool)
	tab.Has("button", "Retry")
	tab.WaitText("could not be started")

	// Whoever signs out leaves nothing behind.
	tab.Fill("Question", "a secret")
	tab.Click("button", "Sign out")
	tab.WaitText("Ask a model")
	if got := tab.Value("Question"); got != "" {
		t.Errorf("%q", got)
	}
	tab.WaitNoText("nowhere")
}

// approved refuses a call, and allows its tool for good, also after a reload.
func (c chatTab) approved() {
	c.T.Helper()
	c.tuned(func() { c.Click("checkbox", "Ask before each call") })
	c.Click("button", "New chat")
	c.ask(useSum)
	c.Has("button", "Allow once")
	c.CheckAccess("an approval")
	c.Do(chromedp.Reload())
	c.Click("button", "Refuse")
	c.WaitText("failed")
	c.answer(1)
	c.Click("button", "Ask again")
	c.Click("button", "Always allow get-sum")
	c.WaitText("done")
	c.answer(1)
	c.Click("button", "Ask again")
	c.answer(1)
	c.Wait("the call is made", `/get-sum.*done/s.test(document.querySelector(".call summary").innerText)`)
}
