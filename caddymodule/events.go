package caddymodule

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
)

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

// Handle calls the function.
func (f eventFunc) Handle(context.Context, caddy.Event) error {
	f()
	return nil
}

var _ caddyevents.Handler = eventFunc(nil) // interface guard
