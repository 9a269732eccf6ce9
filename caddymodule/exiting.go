package caddymodule

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
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
	// atExit registers waitAtExit when the first home is opened: a process without a model server ends as Caddy does.
	atExit sync.Once
)

// waitAtExit makes the process wait, before it ends, for the requests of older configurations.
func waitAtExit() {
	caddy.OnExit(func(context.Context) {
		beginExit(time.Duration(graceLeft.Load()))
		leaving.Wait()
	})
}

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

// stopping is called when the app's configuration is about to stop, at the end of the process or after a newer one has
// started.
func (a *App) stopping() {
	if caddy.Exiting() {
		beginExit(a.grace())
	} else {
		a.retire()
	}
}
