package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/machine"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
)

const preflightAge = "600" // how long a browser may cache the answer to a preflight, in seconds

const exposed = "X-Request-Id, Request-Id, Retry-After, X-Should-Retry" // the response headers that a web page may read

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// share sets the headers by which a browser lets a web page use the API. answered is true if the request was a preflight.
func share(c *endpoint.Call) (answered bool) {
	origin := c.Request.Header.Get("Origin")
	origins := origins(c.Site, c.Request)
	if len(origins) == 0 || origin == "" {
		return false
	}
	h := c.Writer.Header()
	h.Add("Vary", "Origin")
	if !allows(origins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", exposed)
	if !isPreflight(c.Request) {
		return false
	}
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PATCH, DELETE")
	if headers := c.Request.Header.Get("Access-Control-Request-Headers"); headers != "" {
		h.Set("Access-Control-Allow-Headers", headers)
	}
	if c.Request.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", preflightAge)
	c.Writer.WriteHeader(http.StatusNoContent)
	return true
}

func origins(a *endpoint.Site, r *http.Request) []string {
	if a.CORSOf != nil {
		return a.CORSOf(r)
	}
	return a.CORS
}

func allows(origins []string, origin string) bool {
	return slices.Contains(origins, origin) || slices.Contains(origins, "*")
}

// refuseForeign refuses web pages of other origins if the browser itself sends all that the request needs: on sites without
// authentication, and for identities found by another authentication, such as basic authentication or a client certificate. A page
// can send a token only if it knows it, and can't reach the home's socket.
//
// A site without authentication also refuses other host names: a page's own name may resolve to this machine (DNS rebinding), which
// makes the page one of the same origin.
func refuseForeign(c *endpoint.Call) *translate.Error {
	if c.Identity == access.Local || c.Identity == access.Nobody || c.Identity != nil && c.Identity.Token != "" || c.Identity.IsNode() {
		return nil
	}
	if c.Identity == nil && !isForThisMachine(c) {
		return foreign("the host name " + endpoint.Quoted(c.Request.Host) + " is not one of this machine's. If it should be, add it to " +
			"hosts in the Caddyfile's lm, or to --hosts of lmcaddy serve, or use lm_auth")
	}
	origin := c.Request.Header.Get("Origin")
	u, err := url.Parse(origin)
	isWeb := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	origins := origins(c.Site, c.Request)
	if slices.Contains(origins, origin) || isWeb && c.Identity == nil && allows(origins, origin) {
		return nil
	}
	if origin != "" && !isWeb {
		return foreign("its origin is " + endpoint.Quoted(origin) + ", so it is from a file, an extension or a desktop app that runs in " +
			"a browser's engine. If it is to use the API, name this origin in the Caddyfile's cors, or use a token with lm_auth")
	}
	if isSameOrigin(c, u) {
		return nil
	}
	page := "another site"
	if origin != "" {
		page = endpoint.Quoted(origin)
	}
	return foreign("it is from a web page of " + page + ", and cors in the Caddyfile doesn't name that. " +
		"A program that isn't a web page sends neither Origin nor Sec-Fetch-Site")
}

// isSameOrigin reports whether a request comes from a page of the API's own site, from the browser's user, or from no browser at all.
// Without authentication, other pages of this machine are allowed, too, unless the browser calls them another site.
func isSameOrigin(c *endpoint.Call, origin *url.URL) bool {
	switch c.Request.Header.Get("Sec-Fetch-Site") { // no page can set it
	case "same-origin", "none":
		return true
	case "same-site", "cross-site":
		return false
	}
	if origin.Host == "" {
		return true
	}
	if origin.Host == c.Request.Host {
		return c.Request.TLS == nil || origin.Scheme == "https" // behind another proxy, the site may use https although we don't
	}
	name := machine.Normal(origin.Hostname())
	return c.Identity == nil && (machine.IsLocalhost(name) || name == machine.Hostname())
}

// isForThisMachine reports whether the request's host can only mean this machine. On a loopback address, that is a name that no name
// server resolves; on others, also an address or a name of this machine on its network. The configuration may add to both.
func isForThisMachine(c *endpoint.Call) bool {
	host := c.Request.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = machine.Normal(strings.Trim(host, "[]"))
	if host == "" || machine.IsLocalhost(host) || host == machine.Hostname() || slices.Contains(c.Site.Hosts, host) {
		return true
	}
	if c.Site.ServesHost != nil && c.Site.ServesHost(c.Request) {
		return true
	}
	at, _ := c.Request.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at == nil {
		return false
	}
	if local, err := netip.ParseAddrPort(at.String()); err != nil || local.Addr().Unmap().IsLoopback() {
		return false // no other machine reaches that address
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return machine.HasAddress(ip)
	}
	return slices.Contains(machine.Names(), host)
}

func foreign(why string) *translate.Error {
	return &translate.Error{Kind: translate.KindForbidden, Code: "foreign_origin", Message: "The request is refused: " + why + "."}
}
