// Package api has the HTTP endpoints of a node: a dialect for each kind of client, with its routes, and which of them a request takes. It
// knows net/http, but not the server that it runs in.
package api

import (
	"net/http"
	"slices"

	"github.com/lmcaddy/lmcaddy/api/anthropic"
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/cluster"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	remotewire "github.com/lmcaddy/lmcaddy/translate/remote"
)

// API serves the endpoints.
type API struct{ *endpoint.Site }

// New returns an API.
func New(c endpoint.Config) *API { return &API{endpoint.NewSite(c)} }

// ServeHTTP answers a request, also one for the page. A path that isn't the API's is answered with 404.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.Root != nil && a.Root.Has(r) {
		a.Root.ServeHTTP(w, r)
		return
	}
	a.answer(w, r, false)
}

// answer answers a request, which may have come as a message on a WebSocket.
func (a *API) answer(w http.ResponseWriter, r *http.Request, isMessage bool) {
	r = meant(r)
	c := endpoint.NewCall(a.Site, dialectOf(r), w, r)
	c.IsMessage, c.AnswerMessage = isMessage, func(w http.ResponseWriter, r *http.Request) { a.answer(w, r, true) }
	defer c.Cancel(nil)
	defer c.Client.Close()
	setHeader(c)
	endpoint.BeginTrace(c)
	defer c.End()
	defer recoverPanic(c)
	if err := answerCall(c); err != nil {
		c.Fail(err)
	}
}

func answerCall(c *endpoint.Call) error {
	if share(c) {
		return nil
	}
	found, err := route(c)
	if err != nil {
		return err
	}
	if found.Path == manage.HealthPath && c.Site.RunningNode(c.Request.Context()) == nil {
		manage.Starting(c)
		return nil
	}
	if c.Node, err = c.Site.Node(c.Request.Context()); err != nil {
		return err
	}
	if refused := refuseLoop(c); refused != nil {
		return refused
	}
	if err := identify(c, found.Scope); err != nil {
		return err
	}
	if refused := refuseForeign(c); refused != nil {
		return refused
	}
	if err := checkQuery(c, found); err != nil {
		return err
	}
	c.Follow(c.Identity, found.Scope)
	if found.Scope == access.ScopeInference && found.Method == http.MethodPost {
		inspect(c)
	}
	return found.Endpoint(c)
}

func setHeader(c *endpoint.Call) {
	c.Writer.Header().Set("X-Request-Id", c.ID)
	c.Writer.Header().Set("X-Content-Type-Options", "nosniff") // or a browser could take a model's words for a page
	if c.Dialect == anthropic.Dialect {
		c.Writer.Header().Set("Request-Id", c.ID)
	}
}

// recoverPanic answers a request that made the server panic, so that no other is affected.
func recoverPanic(c *endpoint.Call) {
	switch fault := recover(); fault {
	case nil:
	case http.ErrAbortHandler:
		panic(fault) // net/http's own way to cut a connection
	default:
		e := c.Panicked(fault)
		if c.Begun {
			panic(http.ErrAbortHandler) // a client can't mistake a cut connection for a complete answer
		}
		c.Fail(e)
	}
}

// inspect keeps the request whole, if the settings say so.
func inspect(c *endpoint.Call) {
	if !c.Node.Record.Inspections.IsOn() {
		return
	}
	c.Inspected = c.Node.Record.Inspections.Begin(record.Summary{
		ID: c.ID, Arrived: c.Arrived, Dialect: c.Dialect.Name, Method: c.Request.Method, Path: endpoint.ShownPath(c.Request),
		Owner: c.Identity.ID(),
	}, endpoint.ShownHeader(c.Request.Header))
	c.Writer = endpoint.Inspecting(c, c.Writer)
}

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
		setHeader(c)
		share(c) // or an allowed web page could not read the error
		c.Fail(err)
		c.Settle()
		return nil, false
	}
	return r.WithContext(endpoint.WithIdentity(r.Context(), who)), true
}

// identify sets the request's identity. Without authentication, administrators' endpoints take a token, and all take the key of a node.
func identify(c *endpoint.Call, needed access.Scope) (err error) {
	c.Identity = endpoint.IdentityOf(c.Request.Context())
	if c.Identity == nil && (needed == access.ScopeAdmin || cluster.IsKey(endpoint.Bearer(c.Request))) {
		c.Identity, err = c.Authenticate(nil, c.Request.RemoteAddr)
	}
	if err != nil {
		return err
	}
	return c.Authorize(c.Identity, needed)
}

// refuseLoop refuses a request that has passed this server before, or too many others, on its way through remotes, which say so.
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
	return translate.NewError(translate.KindUnavailable, remotewire.CodeLoop, "", "This request has been here before, or has passed too "+
		"many servers: their remotes lead in a circle. The administrator has to remove one of them.")
}
