package caddymodule

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
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
