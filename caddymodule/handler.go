package caddymodule

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lmcaddy/lmcaddy/api"
)

func init() { caddy.RegisterModule(new(Handler)) }

// Handler serves the model server's endpoints: all below /api/ and /v1/. Other requests go to the next handler.
type Handler struct {
	// How many bytes a request's body may have, decoded. Default: 64 MiB.
	MaxBody int64 `json:"max_body,omitempty"`

	// The origins whose web pages may use the API from a browser, such as https://app.example; "*": all. Default: none.
	CORS []string `json:"cors,omitempty"`

	api *api.API
	app *App
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.lm_api", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app, which is made with its defaults where the configuration doesn't have it.
func (h *Handler) Provision(ctx caddy.Context) error {
	app, err := ctx.App("lm")
	if err != nil {
		return err
	}
	a := app.(*App)
	c := configOf(ctx, a)
	c.MaxBody, c.CORS = h.MaxBody, h.CORS
	h.api, h.app = api.New(c), a
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		a.watchServer(server)
	}
	return nil
}

// ServeHTTP answers what is the API's.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if h.app.retired.Load() && r.ProtoMajor < 3 {
		w.Header().Set("Connection", "close") // as a GOAWAY, over HTTP/2
	}
	if !h.api.Owns(r.URL.Path) {
		return next.ServeHTTP(w, r)
	}
	h.app.requests.begin()
	defer h.app.requests.end()
	h.api.ServeHTTP(w, r)
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
