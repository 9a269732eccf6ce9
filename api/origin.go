package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/lmcaddy/lmcaddy/translate"
)

// preflightAge is for how long a browser may keep the answer to a preflight, in seconds.
const preflightAge = "600"

// exposed are the headers of an answer that a web page may read.
const exposed = "X-Request-Id, Request-Id, Retry-After, X-Should-Retry"

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// share says which web pages may use the API from a browser. True is that the request was a preflight, and is answered.
func (c *call) share() (answered bool) {
	origin := c.r.Header.Get("Origin")
	origins := c.api.origins(c.r)
	if len(origins) == 0 || origin == "" {
		return false
	}
	h := c.w.Header()
	h.Add("Vary", "Origin")
	if !allows(origins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", exposed)
	if !isPreflight(c.r) {
		return false
	}
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PATCH, DELETE")
	if headers := c.r.Header.Get("Access-Control-Request-Headers"); headers != "" {
		h.Set("Access-Control-Allow-Headers", headers)
	}
	if c.r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", preflightAge)
	c.w.WriteHeader(http.StatusNoContent)
	return true
}

// origins are those whose web pages may use the API.
func (a *API) origins(r *http.Request) []string {
	if a.CORSOf != nil {
		return a.CORSOf(r)
	}
	return a.CORS
}

func allows(origins []string, origin string) bool {
	return slices.Contains(origins, origin) || slices.Contains(origins, "*")
}

// refuseForeign keeps web pages out of a site without authentication: those of other sites, and those that have given
// their own name this machine's address (DNS rebinding). Programs that are no browsers don't send an Origin.
func (c *call) refuseForeign() *translate.Error {
	if c.who != nil {
		return nil
	}
	if host := c.r.Host; !isOurs(host) && (c.api.ServesHost == nil || !c.api.ServesHost(c.r)) {
		return foreign("the host name " + quoted(host) + " is not one of this machine's. If it should be, name it in the Caddyfile " +
			"as the site's address, or use lm_auth")
	}
	origin := c.r.Header.Get("Origin")
	if origin == "" || allows(c.api.origins(c.r), origin) {
		return nil
	}
	u, err := url.Parse(origin)
	isWeb := err != nil || u.Scheme == "http" || u.Scheme == "https" || u.Scheme == ""
	if isWeb && (err != nil || u.Host == "" || (u.Host != c.r.Host && !isThisMachine(u.Hostname()))) {
		return foreign("it is from a web page of " + quoted(origin) + ", and cors in the Caddyfile doesn't name that")
	}
	return nil
}

func foreign(why string) *translate.Error {
	return &translate.Error{Kind: translate.KindForbidden, Code: "foreign_origin", Message: "The request is refused: " + why + "."}
}

// quoted is what a client sent, short enough for a message.
func quoted(s string) string {
	const enough = 100
	if len(s) > enough {
		s = s[:enough] + "…"
	}
	return `"` + s + `"`
}

var hostName = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return strings.ToLower(name)
})

// isThisMachine tells whether a host's name, or its address, can only mean this machine. Any other address may be that of
// anybody's web server.
func isThisMachine(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.IsLoopback()
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || name != "" && name == hostName()
}

// isOurs tells whether a host, with or without a port, can only mean this machine or its network: an address, the
// machine's own name, or a name that no public name server answers for.
func isOurs(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return true
	}
	if host == hostName() || !strings.Contains(host, ".") {
		return true
	}
	for _, private := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, private) {
			return true
		}
	}
	return false
}
