package api

import (
	"net/http"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/node"
)

// Admit checks whether a request is allowed. If so, the request that it returns carries the identity; if not, Admit has answered
// it in the dialect of the path. trusted is the identity that another authentication has found, nil if none; a token takes
// precedence. address is the client's: guesses at tokens from one address are slowed down.
//
// Paths that aren't the API's take any identity. A request to a public endpoint is from [node.Nobody], so that it gets no further
// rights if another handler changes its path.
func (a *API) Admit(w http.ResponseWriter, r *http.Request, trusted *node.Identity, address string) (admitted *http.Request, ok bool) {
	id := requestID(r)
	r = r.WithContext(logs.WithRequest(r.Context(), id)) // for what is logged of it, here and later
	r2 := meant(r)
	c := &endpoint.Call{Site: a.Site, Writer: w, Request: r2, ID: id, Arrived: time.Now(), Dialect: dialectOf(r2)}
	needed := endpoint.Anyone
	if path := c.Request.URL.Path; ownsPath(path) {
		rt, _, _ := lookUp(r.Method, path)
		if isPreflight(r) || rt != nil && rt.Scope == endpoint.Public {
			return r.WithContext(endpoint.WithIdentity(r.Context(), node.Nobody)), true
		}
		if rt != nil {
			needed = rt.Scope
		}
	}
	who, err := c.Authenticate(trusted, address)
	if err == nil {
		err = c.Authorize(who, needed)
	}
	if err != nil {
		tellID(c)
		share(c) // or an allowed web page could not read the error
		c.Fail(err)
		c.Settle()
		return nil, false
	}
	return r.WithContext(endpoint.WithIdentity(r.Context(), who)), true
}

// identify sets the request's identity. On a site without authentication, an administrator's endpoints take a token, and all take the key of
// another node.
func identify(c *endpoint.Call, needed node.Scope) error {
	if c.Identity = endpoint.IdentityOf(c.Request.Context()); c.Identity != nil || needed != node.ScopeAdmin && !node.LooksLikePeerKey(endpoint.Bearer(c.Request)) {
		return c.Authorize(c.Identity, needed)
	}
	who, err := c.Authenticate(nil, c.Request.RemoteAddr)
	if err == nil {
		err = c.Authorize(who, needed)
	}
	c.Identity = who
	return err
}
