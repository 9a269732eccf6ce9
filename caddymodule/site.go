package caddymodule

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddypki"

	"github.com/lmcaddy/lmcaddy/api"
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
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

// sitesOf describes a configuration's servers that have the API.
func sitesOf(ctx caddy.Context) []resource.Site {
	sites := []resource.Site{}
	servers := serversOf(ctx)
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		server := servers[name]
		s := resource.Site{
			Server: name, Addresses: addressesOfServer(server), Hosts: []string{}, Dialects: []string{}, CORS: []string{},
			TLS:            len(server.TLSConnPolicies) > 0,
			Authentication: !isOpen(server.Routes, false), Reachable: slices.ContainsFunc(server.Listen, isReachable),
		}
		handlers := 0
		eachHandler(server.Routes, nil, func(h *Handler, hosts []string) {
			handlers++
			s.Hosts = append(s.Hosts, hosts...)
			s.CORS = append(s.CORS, h.CORS...)
			s.Page = s.Page || h.hasPage()
			for _, d := range h.Dialects {
				s.Dialects = append(s.Dialects, string(d))
			}
			if s.MaxBodyBytes = max(s.MaxBodyBytes, int64(h.MaxBody)); h.MaxBody == 0 {
				s.MaxBodyBytes = max(s.MaxBodyBytes, endpoint.DefaultMaxBody)
			}
		})
		if handlers > 0 {
			sites = append(sites, s)
		}
	}
	return sites
}

// pagesOf returns the URLs of the sites that have the page, as a browser on this machine can open them.
func pagesOf(sites []resource.Site) []string {
	pages := []string{}
	for _, s := range sites {
		for _, address := range s.Addresses {
			u, err := url.Parse(address)
			if !s.Page || err != nil || u.Scheme != "http" && u.Scheme != "https" {
				continue
			}
			host := u.Hostname()
			if len(s.Hosts) > 0 && !strings.ContainsAny(s.Hosts[0], "*{") {
				host = s.Hosts[0]
			}
			if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
				host = "localhost"
			}
			if port := u.Port(); strings.Contains(host, ":") || port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
				host = net.JoinHostPort(host, port)
			}
			pages = append(pages, u.Scheme+"://"+host)
		}
	}
	return pages
}

// eachHandler calls do with each lm_api in routes, and the hosts that it serves.
func eachHandler(routes caddyhttp.RouteList, hosts []string, do func(*Handler, []string)) {
	for _, route := range routes {
		served := hosts
		for _, named := range hostMatchers(route) {
			served = named
		}
		for _, handler := range route.Handlers {
			switch h := handler.(type) {
			case *Handler:
				do(h, served)
			case *caddyhttp.Subroute:
				eachHandler(h.Routes, served, do)
			}
		}
	}
}

// addressesOfServer returns where a server listens, as URLs.
func addressesOfServer(server *caddyhttp.Server) (addresses []string) {
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
	return addresses
}

// Described is a configuration that was read without being started.
type Described struct {
	resource.Configuration

	// PostgresURL is the address of the database, with its password; empty: SQLite.
	PostgresURL string

	// Mistakes are sentences without a full stop about what is surely meant otherwise.
	Mistakes []string
}

// Describe reads a configuration in Caddy's JSON as a start would, and starts nothing. What Caddy logs or stores on the way is
// thrown away. The error is that of a start, where it is about the configuration.
func Describe(config []byte) (Described, error) {
	var c caddy.Config
	if err := json.Unmarshal(config, &c); err != nil {
		return Described{}, fmt.Errorf("the configuration isn't valid: %w", err)
	}
	storage, err := os.MkdirTemp("", "lmcaddy-describe-")
	if err != nil {
		return Described{}, err
	}
	defer os.RemoveAll(storage) //nolint:errcheck // in the system's folder for temporary files
	c.StorageRaw = caddyconfig.JSON(map[string]string{"module": "file_system", "root": storage}, nil)
	nowhere := caddyconfig.JSONModuleObject(struct{}{}, "output", "discard", nil)
	c.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{WriterRaw: nowhere}}}}
	_, _, _ = caddy.BufferedLog() // holds what the old logger says about the new one
	ctx, err := caddy.ProvisionContext(&c)
	if err != nil {
		return Described{}, err
	}
	app, err := ctx.AppIfConfigured("lm")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return Described{}, errors.New("the configuration has no lm_api, and no global option lm: it serves no models")
	}
	if err != nil {
		return Described{}, err
	}
	a := app.(*App)
	return Described{a.describe(ctx), a.settings.Store.PostgresURL, a.mistakes()}, nil
}

func (a *App) describe(ctx caddy.Context) resource.Configuration {
	c := a.InForce(a.settings.Hubs)
	c.File, c.Sites = program().ConfigFile, sitesOf(ctx)
	return c
}
