package caddymodule

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// startWatcher is told when a configuration has started.
type startWatcher struct{ ctx caddy.Context }

// watchStart has the program told where the configuration's sites answer.
func watchStart(ctx caddy.Context) error {
	if program().Serving == nil {
		return nil
	}
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("watching for the start: %w", err)
	}
	return app.(*caddyevents.App).On("started", startWatcher{ctx})
}

// Handle is told that the configuration has started.
func (w startWatcher) Handle(context.Context, caddy.Event) error {
	if addresses := addressesOf(w.ctx); len(addresses) > 0 {
		program().Serving(addresses)
	}
	return nil
}

// addressesOf are those of a configuration's sites, as URLs.
func addressesOf(ctx caddy.Context) []string {
	addresses := []string{}
	app, err := ctx.AppIfConfigured("http")
	if err != nil {
		return addresses
	}
	for _, server := range app.(*caddyhttp.App).Servers {
		scheme := "http://"
		if len(server.TLSConnPolicies) > 0 {
			scheme = "https://"
		}
		for _, listen := range server.Listen {
			if network, address, ok := strings.Cut(listen, "/"); !ok {
				addresses = append(addresses, scheme+listen)
			} else if strings.HasPrefix(network, "tcp") {
				addresses = append(addresses, scheme+address)
			} else {
				addresses = append(addresses, listen)
			}
		}
	}
	slices.Sort(addresses)
	return addresses
}

// leaveOutTLSProtocols has plain sites not offer what takes TLS ([Program].PlainHTTP1). It is called while the HTTP app is provisioned, when it is known which servers have TLS.
func leaveOutTLSProtocols(ctx caddy.Context) {
	for _, m := range ctx.Modules() {
		app, ok := m.(*caddyhttp.App)
		if !ok {
			continue
		}
		for _, server := range app.Servers {
			isDefault := len(server.Protocols) == 0 || slices.Equal(server.Protocols, []string{"h1", "h2", "h3"})
			if len(server.TLSConnPolicies) == 0 && server.ListenProtocols == nil && isDefault {
				server.Protocols = []string{"h1"}
			}
		}
	}
}

var _ caddyevents.Handler = startWatcher{} // interface guard
