package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// held is what a tab holds after its garbage was collected.
type held struct {
	heap                  float64 // bytes
	nodes, listeners, doc int64
}

func holds(tab *harness.Tab) (h held) {
	tab.T.Helper()
	tab.Do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		for range 3 {
			if err = heapprofiler.CollectGarbage().Do(ctx); err != nil {
				return err
			}
		}
		if h.heap, _, _, _, err = runtime.GetHeapUsage().Do(ctx); err == nil {
			h.doc, h.nodes, h.listeners, err = memory.GetDOMCounters().Do(ctx)
		}
		return err
	}))
	return h
}

// TestPageMemory_OfABusyServer leaves views open while thousands of requests come, each with events and lines of the log, as many as in a
// busy hour. Once the views have all that they keep, they take no more memory.
func TestPageMemory_OfABusyServer(t *testing.T) {
	t.Parallel()
	engine := harness.StartFake(t, harness.Fields{})
	s := harness.Start(harness.NewHome(t), harness.Config{Engine: engine.Lines(), LM: []string{"inspect 50", "queue 0"}})
	admin := created(t, s.Home, "--name", "boss", "--scopes", "admin")
	tabs := map[string]*harness.Tab{}
	for view, sign := range map[string]string{
		"requests": `document.querySelector("tbody tr a")`, "logs?level=debug": `document.querySelectorAll(".log-line").length > 5`,
		"status": `document.querySelector("main h1")`, "chat": `document.querySelector(".turn .figures")`,
	} {
		tab := openAs(t, s, admin, "#/"+view)
		tab.Wait("it follows events", `document.querySelector(".connection.live")`)
		tabs[view] = tab
		if view == "chat" {
			tab.Wait("a model is chosen", `document.querySelector(".model-picker")?.value`)
			chatTab{tab}.asked("Hello", 1)
		}
		s.As(admin).Post(harness.NativeChatPath, harness.NativeAsk("Hello")).Want(t, http.StatusOK)
		tab.Wait("it shows something", sign)
	}
	flood(t, s.As(admin), 1200)
	before := map[string]held{}
	for view, tab := range tabs {
		settle(tab, s.As(admin), view)
		before[view] = holds(tab)
	}
	// A view that missed events fetches its list anew, and may hold it in addition, but once: what leaks grows again.
	once := grown(t, s.As(admin), tabs, before)
	if len(once) == 0 {
		return
	}
	for _, view := range grown(t, s.As(admin), tabs, before) {
		if slices.Contains(once, view) {
			t.Errorf("%s takes more and more memory", view)
		}
	}
}

// grown sends 2500 requests, and returns the views that then hold more than before. It updates before.
func grown(t *testing.T, s *harness.Server, tabs map[string]*harness.Tab, before map[string]held) (grows []string) {
	t.Helper()
	flood(t, s, 2500)
	for view, tab := range tabs {
		settle(tab, s, view)
		was, is := before[view], holds(tab)
		before[view] = is
		t.Logf("%s: %.1f MB, %d nodes, %d listeners, and after 2500 more requests %.1f MB, %d, %d", view, was.heap/1e6, was.nodes, was.listeners, is.heap/1e6, is.nodes, is.listeners)
		// Views that kept all requests or lines took 1.0 and 1.7 MB more.
		if is.heap > was.heap+6e5 || is.nodes > was.nodes*11/10+200 || is.listeners > was.listeners*11/10+20 || is.doc > was.doc {
			grows = append(grows, view)
		}
	}
	return grows
}

// flood sends requests, several at a time.
func flood(t *testing.T, s *harness.Server, number int) {
	t.Helper()
	ask := harness.Fields{"model": harness.Model, "messages": []any{harness.Fields{"role": "user", "content": "Hello"}}, "max_tokens": 1}
	var left atomic.Int64
	left.Store(int64(number))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if reply := s.Post("/v1/chat/completions", ask); reply.Status != http.StatusOK {
					t.Errorf("%d %s", reply.Status, reply.Body)
					return
				}
			}
		})
	}
	all.Wait()
}

// settle waits until a view shows the newest request, so that everything before has been shown as well.
func settle(tab *harness.Tab, s *harness.Server, view string) {
	tab.T.Helper()
	id := s.Post("/v1/chat/completions", harness.Fields{"model": harness.Model, "messages": []any{harness.Fields{"role": "user", "content": "Hello"}}}).Header.Get("X-Request-Id")
	switch view {
	case "requests":
		tab.Wait("the newest is listed", fmt.Sprintf(`document.querySelector("tbody tr a")?.href.includes(%q)`, id))
	case "logs?level=debug":
		tab.Wait("the newest line is there", fmt.Sprintf(`[...document.querySelectorAll(".log-line")].some((e) => e.innerText.includes(%q))`, id))
	default:
		tab.Wait("it answers", `new Promise((done) => requestIdleCallback(() => done(true)))`)
	}
}
