package caddymodule

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
)

// The end of the process. Caddy waits for the newest configuration's requests, for its grace period, and for those of older
// ones only as long as their own grace period lasts, which begins with the reload. So we wait for the rest.
var (
	// exiting is closed when the process begins to end, before the servers wait for their requests.
	exiting = make(chan struct{})
	// graceOver is closed when the grace period is over, if it ever is.
	graceOver = make(chan struct{})

	// leaving counts the replaced configurations that still have requests. Each keeps its node open.
	leaving sync.WaitGroup
	// graceLeft is the grace period, in nanoseconds, of the last replaced configuration that had a model server. It is used
	// if the newest configuration has none.
	graceLeft atomic.Int64

	beginOnce sync.Once
	// atExit makes the process wait for them when the first home is opened: a process without a model server ends as Caddy does.
	atExit sync.Once
)

// beginExit starts the grace period. A grace of 0 never ends.
func beginExit(grace time.Duration) {
	beginOnce.Do(func() {
		if grace > 0 {
			time.AfterFunc(grace, func() { close(graceOver) })
		}
		nodes.Range(func(_, value any) bool {
			value.(*pooled).beginEnd()
			return true
		})
		close(exiting)
	})
}

// stopping is called when the app's configuration is about to stop, at the end of the process or after a newer one has started.
func (a *App) stopping() {
	if caddy.Exiting() {
		beginExit(a.grace())
		return
	}
	// Clients reconnect to the newer configuration, and get a moment to do so.
	graceLeft.Store(int64(a.grace()))
	if !a.retired.Swap(true) {
		close(a.replaced)
	}
	if err := steer(); err != nil {
		a.log.Debug("new connections aren't kept from the replaced configuration", "error", err)
	}
	a.requests.waitQuiet(quietFor, retireFor)
}

// onEvent calls a function at each event that Caddy emits for a configuration under a name, such as "started" or
// "stopping". Caddy continues when the function returns.
func onEvent(ctx caddy.Context, name string, do func()) error {
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("watching for the event %q: %w", name, err)
	}
	return app.(*caddyevents.App).On(name, eventFunc(do))
}

type eventFunc func()

func (f eventFunc) Handle(context.Context, caddy.Event) error {
	f()
	return nil
}

var _ caddyevents.Handler = eventFunc(nil) // interface guard
