package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// guarded is a site that requires a token.
var guarded = harness.Config{Site: []string{"lm_auth"}, LM: []string{"inspect 50"}}

// openAs opens the page at a view with a token.
func openAs(t *testing.T, s *harness.Server, token, path string) *harness.Tab {
	t.Helper()
	tab := harness.OpenPage(t, s.Base, harness.View{Path: path})
	signIn(tab, token)
	return tab
}

// TestPageActivity_Tokens creates a token, uses it, changes it and revokes it.
func TestPageActivity_Tokens(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), guarded)
	admin := created(t, s.Home, "--name", "boss", "--scopes", "admin")
	tab := openAs(t, s, admin, "#/tokens")
	tab.Has("row", "boss")
	tab.Click("button", "Create token")
	tab.Wait("it has to have a name", `document.querySelector("dialog [type=submit]").getAttribute("aria-disabled") === "true"`)
	tab.Fill("Name", "<b>guest</b>")
	tab.Click("checkbox", "models.manage")
	tab.Fill("Models", "lmcaddy/*\nother/model")
	tab.Fill("Requests per minute", "1o")
	tab.WaitText("Enter a whole number.")
	tab.Fill("Requests per minute", "100")
	tab.Fill("Tokens per day", "100000")
	tab.Choose("Expires", "In 30 days")
	tab.Click("button", "Create")
	tab.WaitText("can't be shown again")
	var secret string
	tab.Eval(`document.querySelector("dialog .code pre").innerText`, &secret)
	tab.Click("button", "Done")
	tab.Has("row", "<b>guest</b>")
	tab.Wait("the secret is gone", fmt.Sprintf(`!document.documentElement.outerHTML.includes(%q)`, secret))
	guest := s.As(secret)
	guest.Post(harness.NativeChatPath, harness.NativeAsk(capital)).Want(t, http.StatusOK)
	guest.Post("/api/v1/models/unload", harness.Fields{"instance_id": harness.Model}).Want(t, http.StatusForbidden)
	list := s.As(admin).Get("/api/v1/tokens").Get(`tokens.#(name=="<b>guest</b>")`)
	if list.Get("models").Raw != `["lmcaddy/*","other/model"]` || list.Get("limits").Raw != `{"requests_per_minute":100,"tokens_per_day":100000}` || list.Get("expires_at").Str == "" {
		t.Errorf("%s", list.Raw)
	}

	tab.Go("#/status") // to fetch the list again
	tab.Has("heading", "Loaded now")
	tab.Go("#/tokens")
	tab.Wait("what it has used is shown", `/\d+ tokens, 1 request\s.*today \d+ of 100K/s.test(document.querySelector("main").innerText)`)
	tab.Click("button", "Edit <b>guest</b>")
	tab.Fill("Name", "friend")
	tab.Fill("Tokens per day", "")
	tab.Choose("Expires", "Never")
	tab.Click("button", "Save")
	tab.WaitText("The token was changed.")
	tab.Has("row", "friend")
	list = s.As(admin).Get("/api/v1/tokens").Get(`tokens.#(name=="friend")`)
	if list.Get("limits").Raw != `{"requests_per_minute":100}` || list.Get("expires_at").Value() != nil || list.Get("models.#").Int() != 2 {
		t.Errorf("%s", list.Raw)
	}
	tab.Click("button", "Revoke friend")
	tab.WaitText("Revoke friend?")
	tab.Click("button", "Cancel")
	tab.WaitNoText("Revoke friend?")
	tab.Click("button", "Revoke friend")
	tab.WaitText("Revoke friend?")
	tab.Click("button", "Revoke")
	tab.WaitText("The token was revoked.")
	guest.Get("/api/v1/models").Want(t, http.StatusUnauthorized)
}

// TestPageActivity_Conversations opens, continues and deletes conversations, and an administrator reads those of another token.
func TestPageActivity_Conversations(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), guarded)
	admin, other := created(t, s.Home, "--name", "boss", "--scopes", "admin"), created(t, s.Home, "--name", "Ada")
	for i := range 60 {
		s.As(admin).Post(harness.NativeChatPath, harness.NativeAsk(fmt.Sprintf("Count to %d", i)).With("max_output_tokens", 1)).Want(t, http.StatusOK)
	}
	s.As(other).Post(harness.NativeChatPath, harness.NativeAsk("My name is Ada.")).Want(t, http.StatusOK)
	s.As(admin).Post("/v1/responses", harness.Fields{"model": harness.Model, "input": "From an agent"}).Want(t, http.StatusOK)

	tab := openAs(t, s, admin, "#/conversations")
	rows := func(n int) {
		t.Helper()
		tab.Wait(fmt.Sprintf("there are %d rows", n), fmt.Sprintf(`document.querySelectorAll("tbody tr").length === %d`, n))
	}
	rows(50)
	tab.Click("button", "Show more")
	rows(61)
	tab.ClickIn("Count to 59", "Delete Count to 59")
	tab.WaitText("Delete this conversation?")
	tab.Click("button", "Delete")
	tab.WaitText("The conversation was deleted.")
	rows(50)
	tab.Click("link", "From an agent")
	tab.WaitText("held with /v1/responses")
	tab.Go("#/conversations")
	tab.Click("link", "Count to 57")
	chat := chatTab{tab}
	chat.answer(1)
	if got := chat.asked(capital, 2); got == "" {
		t.Error("it can't be continued")
	}
	tab.Go("#/conversations")
	tab.Wait("it is the first one", `document.querySelector("tbody tr")?.innerText.includes("Count to 57")`)

	tab.Choose("Whose", "Ada")
	rows(1)
	tab.Click("link", "My name is Ada.")
	tab.WaitText("another owner's conversation")
	tab.Wait("nothing can be asked", `!document.querySelector(".composer") && !document.querySelector("[aria-label='Ask again']")`)
	tab.Go("#/conversations")
	rows(50)
	tab.Click("button", "Delete old ones")
	tab.Choose("Not continued for", "0")
	tab.Click("button", "Delete")
	tab.WaitText("60 conversations were deleted.")
	tab.WaitText("No conversations are stored")
	if n := s.As(other).Get("/api/v1/conversations").Get("conversations.#").Int(); n != 1 {
		t.Errorf("%d conversations of the other token are left", n)
	}
}

// TestPageActivity_Requests sees requests as they come, and one of them whole with its lines of the log.
func TestPageActivity_Requests(t *testing.T) {
	t.Parallel()
	engine := harness.StartFake(t, harness.Fields{"Rules": []harness.Fields{{"Contains": "slow", "Cues": []harness.Fields{{"After": 2, "Gate": "go"}}}, {}}})
	s := harness.Start(harness.NewHome(t), harness.Config{Engine: engine.Lines(), Site: guarded.Site, LM: guarded.LM})
	admin, other := created(t, s.Home, "--name", "boss", "--scopes", "admin"), created(t, s.Home, "--name", "Ada")
	tab := openAs(t, s, admin, "#/requests")
	tab.WaitText("No requests yet")
	tab.Wait("it follows events", `document.querySelector(".connection.live")`)
	ask := harness.Fields{"model": harness.Model, "messages": []any{harness.Fields{"role": "user", "content": "Hello <script>"}}}
	s.As(other).Post("/v1/chat/completions", ask).Want(t, http.StatusOK)
	tab.Wait("it is there", `/ok.*lmcaddy\/tinychat.*openai.*Ada/s.test(document.querySelector("tbody tr")?.innerText)`)
	s.As(other).Post("/v1/chat/completions", ask.With("model", "nosuch")).Want(t, http.StatusNotFound)
	tab.WaitText("404 model_not_found")
	slow := s.As(other).OpenNative(harness.NativeAsk("slow"))
	tab.WaitText("1 running")
	tab.Click("radio", "Running")
	tab.Wait("only it is listed", `document.querySelectorAll("tbody tr").length === 1 && document.querySelector("tbody .badge").innerText === "running"`)
	engine.Release(t, "go")
	slow.WaitFor("chat.end")
	tab.WaitText("No request fits these filters")
	tab.Click("radio", "Failed")
	tab.Wait("only it is listed", `document.querySelectorAll("tbody tr").length === 1 && document.querySelector("tbody .badge").innerText.startsWith("404")`)
	tab.Click("radio", "All")
	tab.Choose("API", "openai")
	tab.Wait("both are listed", `document.querySelectorAll("tbody tr").length === 2`)
	tab.Do(chromedp.Click("tbody tr:last-child a", chromedp.ByQuery))
	tab.WaitText("POST /v1/chat/completions")
	tab.Click("button", "Request of the client")
	tab.WaitText(`"content": "Hello <script>"`)
	tab.Click("button", "Answer of the engine")
	tab.WaitText("chat.completion.chunk")
	tab.Screenshot("details")
	tab.CheckAccess("details")
	tab.Click("link", "Its lines in the log")
	tab.Has("heading", "Logs")
	tab.WaitText("a request ended")
	tab.Wait("there are no other requests", `[...document.querySelectorAll(".log-line")].every((e) => e.innerText.includes("request=" + new URLSearchParams(location.hash.split("?")[1]).get("request")))`)

	// Another token sees its own, and nothing whole.
	mine := openAs(t, s, other, "#/requests")
	mine.Wait("its own are there", `document.querySelectorAll("tbody tr").length === 3`)
	mine.Do(chromedp.Click("tbody tr:last-child a", chromedp.ByQuery))
	mine.WaitText("Administrators can see whole requests")
	mine.Go("#/logs")
	mine.WaitText("This token lacks the scope admin.")
}

// TestPageActivity_Logs follows the log, with each filter, and pauses.
func TestPageActivity_Logs(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), guarded)
	admin := created(t, s.Home, "--name", "boss", "--scopes", "admin")
	s.As(admin).Post(harness.NativeChatPath, harness.NativeAsk(capital)).Want(t, http.StatusOK)
	tab := openAs(t, s, admin, "#/logs")
	tab.WaitText("Following")
	tab.WaitText("model loaded")
	shows := func(what, text string) {
		t.Helper()
		tab.Wait(what, fmt.Sprintf(`document.querySelector(".log").innerText.includes(%q)`, text))
	}
	lacks := func(what, text string) {
		t.Helper()
		tab.Wait(what, fmt.Sprintf(`!document.querySelector(".log").innerText.includes(%q)`, text))
	}
	lacks("debug is hidden", "a request ended")
	tab.Click("checkbox", "Output of engines")
	shows("engines are heard", "print_info")
	tab.Click("checkbox", "Output of engines")
	lacks("engines are quiet", "print_info")
	tab.Choose("Level", "debug")
	shows("debug is shown", "a request ended")
	tab.Fill("Text", "a request ENDED")
	tab.Wait("only what was searched for", `document.querySelectorAll(".log-line").length === 1`)
	tab.Screenshot("found")
	tab.Fill("Text", "")
	shows("all is back", "print_info")
	tab.Choose("Model", harness.Model)
	shows("its own lines", "print_info")
	lacks("nothing of the server", "serving initial configuration")
	tab.Choose("Model", "All models")
	tab.Choose("Level", "error")
	tab.WaitText("0 lines")
	tab.Choose("Level", "debug")
	id := s.As(admin).Post(harness.NativeChatPath, harness.NativeAsk(capital)).Want(t, http.StatusOK).Header.Get("X-Request-Id")
	shows("a new line comes by itself", id)
	tab.Fill("Request id", id)
	tab.Wait("only its line", `document.querySelectorAll(".log-line").length === 1`)
	tab.Do(chromedp.Click(".log-line", chromedp.ByQuery))
	tab.WaitText(`"outcome": "ok"`)
	tab.Click("link", "The request")
	tab.Has("heading", "Request") // the line has the path, too
	tab.WaitText("/api/v1/chat")

	tab.Go("#/logs?level=debug")
	tab.WaitText("Following")
	shows("the lines are there", id)
	tab.Click("button", "Pause")
	tab.WaitText("Paused")
	id = s.As(admin).Post(harness.NativeChatPath, harness.NativeAsk(capital)).Want(t, http.StatusOK).Header.Get("X-Request-Id")
	s.As(admin).Get("/api/v1/logs?level=debug&request="+id).Want(t, http.StatusOK)
	lacks("nothing comes", id)
	tab.Click("button", "Resume")
	shows("what was missed comes", id)
	tab.CheckAccess("logs")
}

// TestPageActivity_Usage shows what was used, by day and by hour, by model and by token.
func TestPageActivity_Usage(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), guarded)
	admin, other := created(t, s.Home, "--name", "boss", "--scopes", "admin"), created(t, s.Home, "--name", "Ada")
	tab := openAs(t, s, admin, "#/usage")
	tab.WaitText("Nothing was used in the last 30 days")
	for _, token := range []string{admin, other, other} {
		s.As(token).Post(harness.NativeChatPath, harness.NativeAsk(capital)).Want(t, http.StatusOK)
	}
	tab.Go("#/status") // to fetch the figures again
	tab.Has("heading", "Loaded now")
	tab.Go("#/usage")
	drawn := func(what string) {
		t.Helper()
		tab.Wait(what, `(() => { const c = document.querySelector(".plot canvas"); if (!c?.width) return false;
			const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
			let coloured = 0; for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 200 && d[i + 2] - d[i] > 60) coloured++;
			return coloured > 200; })()`)
	}
	drawn("a bar is drawn")
	tab.Wait("the table has the figures", `/lmcaddy\/tinychat\s+3\s+57\s+93\s+150/.test(document.querySelector("main").innerText)`)
	tab.Click("radio", "By token")
	tab.Wait("both tokens are listed", `/Ada\s+2\s.*boss\s+1\s/s.test(document.querySelector("main").innerText)`)
	drawn("bars are drawn by token")
	tab.Choose("Token", "boss")
	tab.Wait("one token is listed", `!document.querySelector(".section").innerText.includes("Ada")`)
	tab.Choose("Token", "All tokens")
	tab.Click("radio", "Requests")
	tab.Wait("requests are counted", `document.querySelector(".plot [role=img]").getAttribute("aria-label").startsWith("Requests of the last 30 days: 3 in all")`)
	tab.Screenshot("days")
	tab.Click("radio", "24 hours")
	drawn("a bar is drawn by hour")
	tab.Wait("the hour is listed", `/lmcaddy\/tinychat\s+3\s+57\s+93\s+150/.test(document.querySelector("main").innerText) && document.querySelector("main").innerText.includes("By hour")`)
	tab.Screenshot("hours")
	for _, look := range harness.Looks {
		tab.Show(look)
		tab.CheckAccess(fmt.Sprint(look))
	}
}
