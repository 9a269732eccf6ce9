package api

import (
	"net/http"
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/cluster"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	remotewire "github.com/lmcaddy/lmcaddy/translate/remote"
)

// Admit checks whether a request is allowed. If so, the request that it returns carries the identity; if not, Admit has answered
// it in the dialect of the path. trusted is the identity that another authentication has found, nil if none; a token takes
// precedence. address is the client's: guesses at tokens from one address are slowed down.
//
// Paths that aren't the API's take any identity. A request to a public endpoint is from [access.Nobody], so that it gets no further
// rights if another handler changes its path.
func (a *API) Admit(w http.ResponseWriter, r *http.Request, trusted *access.Identity, address string) (admitted *http.Request, ok bool) {
	asked := meant(r)
	c := endpoint.NewCall(a.Site, dialectOf(asked), w, asked)
	defer c.Cancel(nil)
	r = r.WithContext(logs.WithRequest(r.Context(), c.ID)) // for what is logged of it later
	needed := endpoint.Anyone
	if path := c.Request.URL.Path; ownsPath(path) {
		rt, _, _ := lookUp(r.Method, path)
		if isPreflight(r) || rt != nil && rt.Scope == endpoint.Public {
			return r.WithContext(endpoint.WithIdentity(r.Context(), access.Nobody)), true
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
		setRequestID(c)
		share(c) // or an allowed web page could not read the error
		c.Fail(err)
		c.Settle()
		return nil, false
	}
	return r.WithContext(endpoint.WithIdentity(r.Context(), who)), true
}

// identify sets the request's identity. On a site without authentication, an administrator's endpoints take a token, and all take the key of
// another node.
func identify(c *endpoint.Call, needed access.Scope) error {
	if c.Identity = endpoint.IdentityOf(c.Request.Context()); c.Identity != nil || needed != access.ScopeAdmin && !cluster.IsKey(endpoint.Bearer(c.Request)) {
		return c.Authorize(c.Identity, needed)
	}
	who, err := c.Authenticate(nil, c.Request.RemoteAddr)
	if err == nil {
		err = c.Authorize(who, needed)
	}
	c.Identity = who
	return err
}

// refuseLoop refuses a request that has passed this server before, or too many others, on its way through remotes. Only servers like this one
// say where a request has been.
func refuseLoop(c *endpoint.Call) *translate.Error {
	if c.Request.UserAgent() != outbound.UserAgent {
		return nil
	}
	via := supervisor.ParseVia(c.Request.Header)
	if len(via) == 0 {
		return nil
	}
	c.Request = c.Request.WithContext(supervisor.WithVia(c.Request.Context(), via))
	if c.Request.Method == http.MethodGet || len(via) <= supervisor.MostHops && !slices.Contains(via, c.Node.ID()) {
		return nil
	}
	return &translate.Error{
		Kind: translate.KindUnavailable, Code: remotewire.CodeLoop,
		Message: "This request has been here before, or has passed too many servers: their remotes lead in a circle. The administrator has to remove one of them.",
	}
}
