// Package api has the HTTP endpoints of a node: a dialect for each kind of client, with its routes, and which of them a request takes. It knows
// net/http, but not the server that it runs in.
package api

import (
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/anthropic"
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/record"
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
	setRequestID(c)
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

func setRequestID(c *endpoint.Call) {
	c.Writer.Header().Set("X-Request-Id", c.ID)
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
		ID: c.ID, Arrived: c.Arrived, Dialect: c.Dialect.Name, Method: c.Request.Method, Path: endpoint.ShownPath(c.Request), Owner: c.Identity.ID(),
	}, endpoint.ShownHeader(c.Request.Header))
	c.Writer = endpoint.Inspecting(c, c.Writer)
}
