package caddymodule

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
)

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
