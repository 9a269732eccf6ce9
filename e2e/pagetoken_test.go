package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestPage_Token: a site with authentication asks for a token, keeps it in the tab alone, and asks again when it is revoked.
func TestPage_Token(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	s := harness.Start(home, harness.Config{Site: []string{"lm_auth"}})
	admin := s.As(created(t, home, "--name", "admin", "--scopes", "admin"))
	token := created(t, home, "--name", "visitor", "--scopes", "models.read,models.manage,inference")

	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/models"})
	tab.Has("heading", "API token")
	tab.CheckAccess("the dialog")
	tab.Press("Escape") // there is nothing to see without a token
	tab.Has("heading", "API token")
	tab.Wait("the field has the focus", `document.activeElement.type === "password"`)
	tab.Click("button", "Continue")
	tab.WaitText("Enter a token first.")
	tab.Fill("Token", "sk-lm-wrong")
	tab.Press("Enter")
	tab.WaitText("The API token is not valid")
	tab.Fill("Token", " "+token+" ")
	tab.Press("Enter")
	tab.Has("row", harness.Model)
	tab.WaitText("visitor")
	var kept struct{ Session, Local, Cookies string }
	tab.Eval(`({ Session: JSON.stringify({ ...sessionStorage }), Local: JSON.stringify({ ...localStorage }), Cookies: document.cookie })`, &kept)
	if !strings.Contains(kept.Session, token) || strings.Contains(kept.Local, token) || kept.Cookies != "" {
		t.Errorf("%+v", kept)
	}
	tab.Do(reload)
	tab.Has("row", harness.Model)

	// What this token may not do says so.
	tab.Click("link", "Tokens")
	tab.WaitText("This token lacks the scope admin.")
	tab.Click("link", "MCP servers")
	tab.WaitText("This token lacks the scope mcp.plugin.")
	tab.CheckAccess("a view that this token may not see")

	// A revoked token: what was typed stays.
	tab.Click("link", "Models")
	tab.ClickIn(harness.Model, "Load")
	tab.Wait("the first field has the focus", `document.activeElement === document.querySelector("dialog .body").querySelector("input, select, textarea")`)
	tab.Fill("Identifier", "typed-before")
	id := admin.Get("/api/v1/tokens").Want(t, http.StatusOK).Get(`tokens.#(name=="visitor").id`).Str
	admin.Do(http.MethodDelete, "/api/v1/tokens/"+id, nil).Want(t, http.StatusOK)
	tab.Has("heading", "API token")
	tab.WaitText("is not valid: it was mistyped, or has been revoked")
	tab.Fill("Token", created(t, home, "--name", "another", "--scopes", "models.read,models.manage"))
	tab.Press("Enter")
	tab.Has("heading", "Load "+harness.Model)
	if got := tab.Value("Identifier"); got != "typed-before" {
		t.Errorf("%q", got)
	}
	tab.Click("button", "Load")
	tab.WaitText("typed-before is loaded")
	if ids := admin.IDs(); len(ids) != 1 || ids[0] != "typed-before" {
		t.Errorf("%v", ids)
	}

	tab.Click("button", "Sign out")
	tab.Has("heading", "API token")
	tab.Wait("the token is forgotten", `!sessionStorage.getItem("lmcaddy.token")`)

	// A token that may only look.
	tab.Fill("Token", created(t, home, "--name", "reader", "--scopes", "models.read"))
	tab.Press("Enter")
	tab.Has("row", harness.Model)
	tab.Wait("it can't load", `[...document.querySelectorAll("main button")].find((b) => b.textContent === "Load…")?.title === "This token lacks the scope models.manage."`)

	// A token that may only ask may list the models.
	tab.Click("button", "Sign out")
	tab.Fill("Token", created(t, home, "--name", "asker", "--scopes", "inference"))
	tab.Press("Enter")
	tab.WaitText("asker")
	tab.Click("link", "Chat")
	tab.Wait("a model is chosen", `document.querySelector(".model-picker")?.value`)
	tab.Fill("Question", "Hello")
	tab.Press("Enter")
	tab.WaitText("How can I help you today?")
}

// TestPage_ConversationOfAnotherToken: it can't be continued, but the question can be asked in a new one.
func TestPage_ConversationOfAnotherToken(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	s := harness.Start(home, harness.Config{Site: []string{"lm_auth"}})
	admin := s.As(created(t, home, "--name", "admin", "--scopes", "admin"))
	tab := chatTab{harness.OpenPage(t, s.Base, harness.View{Path: "#/chat"})}
	tab.Fill("Token", created(t, home, "--name", "first", "--scopes", "models.read,inference"))
	tab.Press("Enter")
	tab.Wait("a model is chosen", `document.querySelector(".model-picker")?.value`)
	tab.tuned(func() { tab.Fill("Temperature", "0") })
	if got := tab.asked(capital, 1); got != franceIs {
		t.Fatalf("%q", got)
	}
	id := admin.Get("/api/v1/tokens").Want(t, http.StatusOK).Get(`tokens.#(name=="first").id`).Str
	admin.Do(http.MethodDelete, "/api/v1/tokens/"+id, nil).Want(t, http.StatusOK)
	tab.Has("heading", "API token")
	tab.Fill("Token", created(t, home, "--name", "second", "--scopes", "models.read,inference"))
	tab.Press("Enter")
	tab.WaitText("second")
	tab.ask("What is the capital of Spain?")
	tab.WaitText("it belongs to another token than the one you use now")
	tab.Click("button", "Ask in a new conversation")
	if got := tab.answer(1); got != spainIs {
		t.Errorf("%q", got)
	}
}

// TestPage_Trusted: somebody whom another authentication has let in needs no token.
func TestPage_Trusted(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	hash := strings.TrimSpace(home.Command("hash-password", "--plaintext", "hiccup", "--algorithm", "bcrypt", "--bcrypt-cost", "4").Output)
	s := harness.Start(home, harness.Config{Site: []string{"basic_auth {", "\tada " + hash, "}", "lm_auth {", "\ttrust {http.auth.user.id}", "}"}})
	tab := harness.OpenPage(t, strings.Replace(s.Base, "//", "//ada:hiccup@", 1), harness.View{Path: "#/models"})
	tab.Has("row", harness.Model)
	tab.WaitText("ada")
	tab.WaitNoText("Sign out")
}

// TestPage_Hosts: the page is the same for everybody and shows nothing by itself: under a foreign name, the API refuses it.
func TestPage_OtherName(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Base+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "evil.example"
	for path, want := range map[string]int{"/": http.StatusOK, "/api/v1/models": http.StatusForbidden} {
		request.URL.Path = path
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
}
