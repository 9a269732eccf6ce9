package caddymodule

import (
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// onServing passes the addresses of the configuration's sites to the program, once it has started.
func (a *App) onServing(ctx caddy.Context) error {
	serving := program().Serving
	if serving == nil {
		return nil
	}
	return onEvent(ctx, "started", func() {
		if addresses := addressesOf(ctx); len(addresses) > 0 {
			serving(addresses, a.node, a.settings.ListAll)
		}
	})
}

// addressesOf returns the addresses of a configuration's sites, as URLs.
func addressesOf(ctx caddy.Context) []string {
	addresses := []string{}
	for _, server := range serversOf(ctx) {
		addresses = append(addresses, addressesOfServer(server)...)
	}
	slices.Sort(addresses)
	return addresses
}

// leaveOutTLSProtocols makes sites without TLS offer HTTP/1 alone, as [Program].PlainHTTP1 says. It is called while the HTTP
// app is provisioned, when it is known which servers have TLS.
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
