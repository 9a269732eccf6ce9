package harness

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// browser is the one Chromium of a run of the tests. Each test has tabs of its own.
type browser struct {
	ctx     context.Context
	folder  string
	end     context.CancelFunc
	endExec context.CancelFunc
	err     error
}

var (
	browserMu sync.Mutex
	running   *browser
)

// chromium is the path of the program.
func chromium() (string, error) {
	out, err := exec.Command("../tools/chromium.sh").Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// openBrowser starts the browser unless it is running.
func openBrowser(t testing.TB) *browser {
	t.Helper()
	browserMu.Lock()
	defer browserMu.Unlock()
	if running == nil {
		running = startBrowser()
	}
	if running.err != nil {
		t.Fatalf("there is no browser: %v", running.err)
	}
	return running
}

func startBrowser() *browser {
	path, err := chromium()
	if err != nil {
		return &browser{err: err}
	}
	folder, err := os.MkdirTemp("", "chromium")
	if err != nil {
		return &browser{err: err}
	}
	ctx, endExec := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.UserDataDir(folder), chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("disable-background-timer-throttling", true),
		chromedp.Flag("disable-renderer-backgrounding", true), chromedp.Flag("disable-backgrounding-occluded-windows", true),
	)
	// What chromedp says of events that it doesn't know is of no use.
	ctx, end := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {}))
	b := &browser{ctx: ctx, folder: folder, end: end, endExec: endExec}
	b.err = chromedp.Run(ctx)
	return b
}

// CloseBrowser ends the browser, if there is one. It is called once, after all tests.
func CloseBrowser() {
	browserMu.Lock()
	defer browserMu.Unlock()
	if running == nil || running.folder == "" {
		return
	}
	_ = chromedp.Cancel(running.ctx) // it may have ended by itself
	running.end()
	running.endExec()
	_ = os.RemoveAll(running.folder)
	running = nil
}

// newTarget opens a tab that shares nothing with others: no storage, no cache.
func (b *browser) newTarget(t testing.TB) context.Context {
	t.Helper()
	var id target.ID
	err := chromedp.Run(b.ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		ctx = cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		of, err := target.CreateBrowserContext().Do(ctx)
		if err != nil {
			return err
		}
		id, err = target.CreateTarget("about:blank").WithBrowserContextID(of).WithNewWindow(true).Do(ctx) // a context has no window yet
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithTargetID(id))
	t.Cleanup(end)
	if err := chromedp.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}
