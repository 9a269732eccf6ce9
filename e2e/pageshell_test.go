package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// reload loads the page again.
var reload = chromedp.ActionFunc(func(ctx context.Context) error { return page.Reload().Do(ctx) })

// TestPage_Shell is about what all views have in common.
func TestPage_Shell(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	for name, test := range map[string]func(*testing.T, *harness.Server){
		"keyboard": pageKeyboard, "phone": pagePhone, "theme": pageTheme, "policy": pagePolicy, "speed": pageSpeed, "server gone": pageServerGone,
	} {
		if name == "server gone" {
			continue // it ends the server
		}
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
	t.Run("server gone", func(t *testing.T) { pageServerGone(t, s) })
}

// pageKeyboard goes around without a mouse.
func pageKeyboard(t *testing.T, s *harness.Server) {
	tab := harness.OpenPage(t, s.Base, harness.View{})
	tab.Has("heading", "Status")
	focused := `document.activeElement?.textContent`
	tab.Press("Tab")
	tab.Wait("the first is the skip link", focused+` === "Skip to content"`)
	tab.Wait("it can be seen", `document.activeElement.getBoundingClientRect().top >= 0`)
	tab.Press("Enter")
	tab.Wait("the content has the focus", `document.activeElement.id === "main"`)
	tab.Eval(`[...document.querySelectorAll("nav a")].find((a) => a.textContent === "Models").focus(), true`, nil)
	tab.Press("Enter")
	tab.Wait("the title has the focus", `document.activeElement.tagName === "H1" && `+focused+` === "Models"`)
	tab.Wait("the tab has a title", `document.title === "Models – lmcaddy"`)
	tab.Wait("the menu says where", `document.querySelector("nav [aria-current=page]").textContent === "Models"`)
	tab.Wait("the row is there", `document.querySelector("main tbody button")`)
	tab.Eval(`document.querySelector("main tbody button").focus(), true`, nil)
	tab.Press("Enter")
	tab.Has("heading", "Load "+harness.Model)
	for range 30 {
		tab.Press("Tab")
		tab.Wait("the focus stays in the dialog", `document.activeElement === document.body || document.querySelector("dialog").contains(document.activeElement)`)
	}
	tab.Press("Escape")
	tab.Wait("the button has the focus again", focused+` === "Load…"`)
}

// pagePhone opens the menu on a small screen.
func pagePhone(t *testing.T, s *harness.Server) {
	tab := harness.OpenPage(t, s.Base, harness.View{Width: 360, Height: 740})
	tab.Has("heading", "Status")
	tab.Click("button", "Menu")
	tab.Look("menu", 390)
	tab.Show(harness.View{Width: 360, Height: 740})
	tab.Click("link", "Memory")
	tab.Has("heading", "Memory")
	tab.Wait("the menu is closed", `document.querySelector(".menu-button").ariaExpanded === "false"`)
}

// pageTheme changes the colours, which a reload keeps.
func pageTheme(t *testing.T, s *harness.Server) {
	tab := harness.OpenPage(t, s.Base, harness.View{})
	tab.Click("button", "Colours: as the system")
	tab.Click("button", "Colours: light")
	tab.Wait("it is dark", `getComputedStyle(document.documentElement).colorScheme === "dark"`)
	tab.Do(reload)
	tab.Has("button", "Colours: dark")
	tab.CheckAccess("dark by choice")
	tab.Click("button", "Colours: dark")
	tab.Wait("it is as the system", `getComputedStyle(document.documentElement).colorScheme === "light dark"`)
	tab.Do(chromedp.ActionFunc(func(ctx context.Context) error { // it can be installed
		_, wrong, manifest, _, err := page.GetAppManifest().Do(ctx)
		if len(wrong) > 0 || !strings.Contains(manifest, `"standalone"`) {
			t.Errorf("%v %s", wrong, manifest)
		}
		return err
	}))
}

// pagePolicy tries what a hostile text would, if it came to be taken for HTML.
func pagePolicy(t *testing.T, s *harness.Server) {
	tab := harness.OpenPage(t, s.Base, harness.View{})
	tab.AllowFault("policy")
	tab.AllowFault("Content Security Policy")
	tab.AllowFault("TrustedHTML")
	tab.AllowFault("TrustedScript")
	tab.Has("heading", "Status")
	tab.Eval(`window.ran = []; true`, nil)
	for name, attempt := range map[string]string{
		"HTML from a string": `document.body.innerHTML += "<img src=x onerror='ran.push(1)'>"`,
		"a script":           `{ const s = document.createElement("script"); s.textContent = "ran.push(2)"; document.body.append(s); }`,
		"eval":               `setTimeout("ran.push(3)")`,
		"an event handler":   `{ const b = document.createElement("button"); b.setAttribute("onclick", "ran.push(4)"); document.body.append(b); b.click(); }`,
		"a frame":            `{ const f = document.createElement("iframe"); f.src = "data:text/html,<script>parent.ran.push(5)</script>"; document.body.append(f); }`,
		"a policy":           `trustedTypes.createPolicy("mine", { createHTML: (s) => s })`,
	} {
		tab.Eval(`(() => { try { `+attempt+` } catch (e) { return String(e) } return "" })()`, nil)
		tab.Eval(`new Promise((done) => setTimeout(() => done(true), 50))`, nil)
		var ran []int
		if tab.Eval(`ran`, &ran); len(ran) > 0 {
			t.Errorf("%s ran: %v", name, ran)
		}
	}
	var sent string
	tab.Eval(`fetch("http://127.0.0.1:9/").then(() => "sent", (e) => String(e))`, &sent)
	if sent == "sent" {
		t.Error("another host was asked")
	}
}

// pageSpeed checks how much the first view needs, and logs how long it took.
func pageSpeed(t *testing.T, s *harness.Server) {
	tab := harness.OpenPage(t, s.Base, harness.View{})
	tab.Has("heading", "Loaded now")
	tab.Wait("it was painted", `performance.getEntriesByName("first-contentful-paint").length`)
	var ms struct{ Response, Painted, Bytes float64 }
	tab.Eval(`((n) => ({ Response: n.responseEnd, Painted: performance.getEntriesByName("first-contentful-paint")[0].startTime, Bytes: n.transferSize }))(performance.getEntriesByType("navigation")[0])`, &ms)
	t.Logf("the page arrived after %.0f ms and was painted after %.0f ms; %.0f bytes were sent", ms.Response, ms.Painted, ms.Bytes)
	if ms.Bytes > 128<<10 {
		t.Errorf("%.0f bytes were sent before the first view", ms.Bytes)
	}
}

// pageServerGone ends the server while the page is open, and starts it again.
func pageServerGone(t *testing.T, s *harness.Server) {
	tab := harness.OpenPage(t, s.Base, harness.View{Path: "#/memory"})
	tab.WaitText("Live")
	s.Kill()
	tab.WaitText("Reconnecting")
	tab.WaitText("The server can't be reached.")
	tab.Has("button", "Try again")
	again := s.Launch(portOf(t, s), "run", "--config", s.Work+"/Caddyfile")
	tab.WaitText("Live")
	again.Post("/api/v1/models/load", harness.Fields{"model": harness.Model}).Want(t, 200)
	tab.Has("row", harness.Model)
	tab.WaitNoText("The server can't be reached.")
}

func portOf(t *testing.T, s *harness.Server) int {
	t.Helper()
	var port int
	for _, digit := range s.Base[strings.LastIndex(s.Base, ":")+1:] {
		port = port*10 + int(digit-'0')
	}
	return port
}
