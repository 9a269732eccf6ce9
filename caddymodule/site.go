package caddymodule

import (
	"encoding/pem"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddypki"

	"github.com/lmcaddy/lmcaddy/api"
)

// servesHost reports whether a site's matcher names the host that a request is for. Such a name was chosen by the operator,
// not by a web page.
func servesHost(r *http.Request) bool {
	server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return false
	}
	for _, route := range server.Routes {
		for _, host := range hostMatchers(route) {
			if matched, err := host.MatchWithError(r); err == nil && matched {
				return true
			}
		}
	}
	return false
}

func hostMatchers(route caddyhttp.Route) (hosts []caddyhttp.MatchHost) {
	for _, set := range route.MatcherSets {
		for _, m := range set {
			if host, ok := m.(*caddyhttp.MatchHost); ok {
				hosts = append(hosts, *host)
			}
		}
	}
	return hosts
}

// serversOf returns a configuration's HTTP servers, by name.
func serversOf(ctx caddy.Context) map[string]*caddyhttp.Server {
	app, err := ctx.AppIfConfigured("http")
	if err != nil {
		return nil
	}
	return app.(*caddyhttp.App).Servers
}

// rootCertificate returns the root certificate of the configuration's own certificate authority, in PEM.
func rootCertificate(ctx caddy.Context) func() ([]byte, error) {
	return func() ([]byte, error) {
		app, err := ctx.AppIfConfigured("pki")
		if err != nil {
			return nil, err
		}
		authority, ok := app.(*caddypki.PKI).CAs[caddypki.DefaultCAID]
		if !ok || authority.RootCertificate() == nil {
			return nil, errors.New("there is no local certificate authority")
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.RootCertificate().Raw}), nil
	}
}

// CheckCORS returns an error if the option cors doesn't accept an origin.
func CheckCORS(origin string) error {
	if origin == "*" || origin == "null" || origin == "file://" { // the last two are for files
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return errors.New("cors " + origin +
			": an origin is a scheme and a host, such as https://app.example or app://obsidian.md, null for files, or * for all websites")
	}
	return nil
}

// warnOpen warns of each server that other machines can reach and that serves the API without authentication.
func warnOpen(ctx caddy.Context, log *slog.Logger) {
	for name, server := range serversOf(ctx) {
		if !isOpen(server.Routes, false) {
			continue
		}
		for _, listen := range server.Listen {
			if isReachable(listen) {
				log.Warn("anyone who can reach this listener can use the models: put lm_auth before lm_api, or bind 127.0.0.1",
					"server", name, "listener", listen)
			}
		}
	}
}

// isExposed reports whether a site serves the API to others than the users of this machine: its listener can be reached from other
// machines, or it has lm_auth, as a site behind another server may have.
func isExposed(ctx caddy.Context) bool {
	for _, server := range serversOf(ctx) {
		isServed := false
		eachHandler(server.Routes, nil, func(*Handler, []string) { isServed = true })
		if isServed && (!isOpen(server.Routes, false) || slices.ContainsFunc(server.Listen, isReachable)) {
			return true
		}
	}
	return false
}

// isOpen reports whether an lm_api in the routes gets requests that didn't pass an lm_auth.
func isOpen(routes caddyhttp.RouteList, guarded bool) bool {
	for _, route := range routes {
		inRoute := guarded
		for _, handler := range route.Handlers {
			switch h := handler.(type) {
			case *Auth:
				inRoute = true
			case *Handler:
				if !inRoute {
					return true
				}
			case *caddyhttp.Subroute:
				if isOpen(h.Routes, inRoute) {
					return true
				}
			}
		}
		if len(route.MatcherSets) == 0 {
			guarded = inRoute // later routes get only what passed this one
		}
	}
	return false
}

// rootOf is what the lm_api that serves the request's host answers at the path /.
func rootOf(r *http.Request) (root api.Root) {
	server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return root
	}
	eachHandler(server.Routes, nil, func(h *Handler, hosts []string) {
		if len(hosts) > 0 {
			isServed, err := caddyhttp.MatchHost(hosts).MatchWithError(r)
			if err != nil || !isServed {
				return
			}
		}
		own := h.root()
		root.Page, root.Ollama = root.Page || own.Page, root.Ollama || own.Ollama
	})
	return root
}

// corsOf returns the origins that a request's server allows on any of its sites.
func corsOf(r *http.Request) (origins []string) {
	server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return nil
	}
	eachHandler(server.Routes, nil, func(h *Handler, _ []string) { origins = append(origins, h.CORS...) })
	return origins
}

// isReachable reports whether other machines can reach a listener.
func isReachable(listen string) bool {
	address, err := caddy.ParseNetworkAddress(listen)
	if err != nil || address.IsUnixNetwork() || address.IsFdNetwork() {
		return false
	}
	if address.Host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(strings.Trim(address.Host, "[]"))
	return err != nil || !ip.IsLoopback()
}
