package caddymodule

import (
	"context"
	"fmt"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
)

// exiting is closed when the process begins to end, before the servers wait for their requests.
var exiting = make(chan struct{})

var beginExit = sync.OnceFunc(func() { close(exiting) })

// watchExit has exiting closed in time. Caddy says of each configuration that it is stopping, also at a reload.
func watchExit(ctx caddy.Context) error {
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("watching for the end of the process: %w", err)
	}
	return app.(*caddyevents.App).On("stopping", exitWatcher{})
}

type exitWatcher struct{}

// Handle is told that a configuration is stopping.
func (exitWatcher) Handle(context.Context, caddy.Event) error {
	if caddy.Exiting() {
		beginExit()
	}
	return nil
}

var _ caddyevents.Handler = exitWatcher{} // interface guard
