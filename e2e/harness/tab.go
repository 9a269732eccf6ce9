package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Tab is a tab of the browser with the page in it. When the test ends, it fails if the page logged an error, threw one, broke its
// content security policy, or sent a request to another host.
type Tab struct {
	T    testing.TB
	Base string
	ctx  context.Context

	mu     sync.Mutex
	faults []string
	hosts  []string
	allow  []string
}

// View says how a tab shows the page.
type View struct {
	Width, Height int    // 0: 1280 and 800
	Dark          bool   // the system's colours
	Path          string // such as #/models
}

// noTitles keeps the page from asking models for titles, which would be requests that a test hasn't made.
const noTitles = `try { localStorage.getItem("lmcaddy.chat.options") ?? localStorage.setItem("lmcaddy.chat.options", '{"hasTitles":false}') } catch {}`

// OpenPage opens the server's page in a new tab.
func OpenPage(t testing.TB, base string, v View) *Tab {
	t.Helper()
	tab := &Tab{T: t, Base: base, ctx: openBrowser(t).newTarget(t)}
	chromedp.ListenTarget(tab.ctx, tab.hear)
	tab.Do(log.Enable(), network.Enable(), runtime.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(noTitles).Do(ctx)
		return err
	}))
	tab.watchPolicy()
	tab.Show(v)
	t.Cleanup(tab.check)
	tab.Go(v.Path)
	return tab
}

// Go opens a path of the server, such as #/models.
func (b *Tab) Go(path string) {
	b.T.Helper()
	b.Do(chromedp.Navigate(b.Base + "/" + path))
}

// Show changes the size and the colours.
func (b *Tab) Show(v View) {
	b.T.Helper()
	if v.Width == 0 {
		v.Width = 1280
	}
	if v.Height == 0 {
		v.Height = 800
	}
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	b.Do(
		emulation.SetDeviceMetricsOverride(int64(v.Width), int64(v.Height), 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}),
	)
	b.Eval(`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))`, nil)
}

// Do carries out actions of chromedp.
func (b *Tab) Do(actions ...chromedp.Action) {
	b.T.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.T.Fatalf("%v\n%s", err, b.state())
	}
}

// Eval evaluates an expression, which may be a promise, and returns its value.
func (b *Tab) Eval(expression string, into any) {
	b.T.Helper()
	b.Do(chromedp.Evaluate(expression, into, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
}

// Wait waits until an expression is true.
func (b *Tab) Wait(what, expression string) {
	b.T.Helper()
	b.T.Logf("waiting: %s", what)
	for deadline := time.Now().Add(tabPatience); ; time.Sleep(20 * time.Millisecond) {
		var holds bool
		b.Eval("!!("+expression+")", &holds)
		if holds {
			return
		}
		if time.Now().After(deadline) {
			b.Screenshot("failure")
			b.T.Fatalf("not within %s: %s\n%s", tabPatience, what, b.state())
		}
	}
}

// tabPatience is how long the page may take for anything.
const tabPatience = time.Minute

// state is what the page shows, for a failure.
func (b *Tab) state() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	var text string
	if err := chromedp.Run(ctx, chromedp.Evaluate(`location.href + "\n" + (document.querySelector("dialog[open]") ?? document.body).innerText`, &text)); err != nil {
		return ""
	}
	if len(text) > 3000 {
		text = text[:3000]
	}
	return text
}

// Screenshot saves a picture of the page as a PNG in the folder that LMCADDY_SCREENSHOTS names, if it does.
func (b *Tab) Screenshot(name string) {
	b.T.Helper()
	dir := os.Getenv("LMCADDY_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	b.Do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().Do(ctx)
		return err
	}))
	name = strings.ReplaceAll(b.T.Name()+"-"+name, "/", "-") + ".png"
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o600); err != nil {
		b.T.Error(err)
	}
}

// AllowFault keeps errors that have a text in them from failing the test.
func (b *Tab) AllowFault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allow = append(b.allow, text)
}

// hear is told of all that happens in the tab.
func (b *Tab) hear(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		isAnswer := e.Entry.Source == log.SourceNetwork // a status of 4xx, or an ended connection: the page shows these
		if e.Entry.Level == log.LevelError && !isAnswer || e.Entry.Source == log.SourceSecurity {
			b.fault("log: %s %s", e.Entry.Source, e.Entry.Text)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			var said []string
			for _, arg := range e.Args {
				said = append(said, strings.Trim(string(arg.Value), `"`)+arg.Description)
			}
			b.fault("console: %s", strings.Join(said, " "))
		}
	case *runtime.EventExceptionThrown:
		b.fault("exception: %s", e.ExceptionDetails.Error())
	case *network.EventRequestWillBeSent:
		b.request(e.Request.URL)
	}
}

func (b *Tab) request(address string) {
	u, err := url.Parse(address)
	base, bad := url.Parse(b.Base)
	if err != nil || bad != nil || u.Scheme == "data" || u.Scheme == "blob" || u.Scheme == base.Scheme && u.Host == base.Host {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hosts = append(b.hosts, address)
}

func (b *Tab) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// watchPolicy counts what the content security policy keeps the page from doing.
func (b *Tab) watchPolicy() {
	b.Do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`addEventListener("securitypolicyviolation", (e) =>
			console.error("policy", e.violatedDirective, e.blockedURI, e.sourceFile, e.lineNumber, e.sample))`).Do(ctx)
		return err
	}))
}

// check fails the test if something was wrong while the tab was open.
func (b *Tab) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		if !slices.ContainsFunc(b.allow, func(text string) bool { return strings.Contains(fault, text) }) {
			b.T.Errorf("the page: %s", fault)
		}
	}
	for _, address := range b.hosts {
		b.T.Errorf("the page sent a request to another host: %s", address)
	}
}

// js is a value as JavaScript.
func js(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // only strings and the like are given
	}
	return string(text)
}
