package caddymodule

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lmcaddy/lmcaddy/api"
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/caddymodule/option"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler serves the model server's endpoints: all below /api/ and /v1/, and llama-server's own. Other requests go to the next
// handler. If no handler answers them, the path / has a page for people, and others get 404: a client with a wrong base URL must not take
// an empty answer for a success.
type Handler struct {
	// The API families that the site serves: "native" (/api/v1 and the greeting), "v0" (/api/v0), "openai" (/v1), "anthropic" (/v1),
	// "ollama" (/api/tags, /api/chat and the others of its API), "llama" (/infill, /tokenize, /rerank and the others of
	// llama-server). Requests for others go to the site's other handlers. Health and root.crt are always served. Default: all.
	Dialects []endpoint.Family `json:"dialects,omitempty" args:"native|v0|openai|anthropic|ollama|llama..."`

	// How many bytes a request's body may have, decoded. Default: 64 MiB.
	MaxBody option.Size `json:"max_body,omitempty" args:"<size>" max:"2GiB"`

	// The origins whose web pages may use the API from a browser, exactly as browsers send them, such as https://app.example; "*": all.
	// Default: none.
	CORS []string `json:"cors,omitempty" args:"<origin...>"`

	// Gives people who open the site in a browser a page to use the server with, at the path / unless another handler answers that.
	// Default: on, if the site serves the family "native", which the page needs.
	Page *bool `json:"page,omitempty"`

	// What the path / answers to clients that aren't browsers: "ollama" makes it say "Ollama is running", by which clients of Ollama's API
	// recognize a server. Default: nothing else than to browsers.
	Greeting string `json:"greeting,omitempty" args:"ollama"`

	api *api.API
	app *App
}

// root is what the site answers at the path /.
func (h *Handler) root() api.Root {
	return api.Root{Page: h.hasPage(), Ollama: h.Greeting == "ollama"}
}

func (h *Handler) hasPage() bool {
	if h.Page != nil {
		return *h.Page
	}
	return h.servesNative()
}

func (h *Handler) servesNative() bool {
	return len(h.Dialects) == 0 || slices.Contains(h.Dialects, endpoint.FamilyNative)
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.lm_api", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app.
func (h *Handler) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	h.app, h.api = app, api.New(endpoint.Config{
		Node: app.Node, Log: recorded(ctx, "http.handlers.lm_api", true), Logs: recent, Describe: app.describing, Version: versionOf(),
		Exiting: exiting, Replaced: app.replaced, Underway: app.requests.counted, Ended: tellCaddy, Hosts: config.Names(app.Hosts),
		ServesHost: servesHost, RootCertificate: rootCertificate(ctx), MaxBody: int64(h.MaxBody), CORS: h.CORS, Families: h.Dialects,
		Root: h.root(),
	})
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && !app.servers[server] {
		app.servers[server] = true
		server.RegisterConnState(app.requests.connState)
	}
	if program().PlainHTTP1 {
		leaveOutTLSProtocols(ctx)
	}
	return nil
}

// Check checks the origins.
func (h *Handler) Check() error {
	for _, origin := range h.CORS {
		if err := CheckCORS(origin); err != nil {
			return err
		}
	}
	return nil
}

// Validate checks the options, and that the page has the family that it needs.
func (h *Handler) Validate() error {
	if err := option.Check(h); err != nil {
		return fmt.Errorf("lm_api: %w", err)
	}
	if h.Page != nil && *h.Page && !h.servesNative() {
		return errors.New(`lm_api: page on: the page needs the native API: add native to dialects`)
	}
	return nil
}

// unhandled is the variable that Caddy sets when a request reaches the end of its handlers.
const unhandled = "unhandled"

// ServeHTTP answers requests for the API, and requests that no other handler answers.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.app.retired.Load() && r.ProtoMajor < 3 {
		w.Header().Set("Connection", "close") // over HTTP/2, this sends GOAWAY
	}
	if !h.api.Owns(r) {
		err := next.ServeHTTP(w, r)
		if nobody, _ := caddyhttp.GetVar(r.Context(), unhandled).(bool); err != nil || !nobody {
			return err
		}
		caddyhttp.SetVar(r.Context(), unhandled, nil)
	}
	h.app.requests.begin()
	defer h.app.requests.end()
	h.api.ServeHTTP(w, r)
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
