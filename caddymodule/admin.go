package caddymodule

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
)

func init() { caddy.RegisterModule(Admin{}) }

// psPath is the path on the admin endpoint of what GET /api/v1/ps says to an administrator.
const psPath = "/lm/ps"

// Admin adds GET /lm/ps to Caddy's admin endpoint: what is loaded or about to be, and how many requests wait. It has no settings.
type Admin struct{}

// CaddyModule returns the Caddy module information.
func (Admin) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.lm", New: func() caddy.Module { return new(Admin) }}
}

// Provision is called just before the admin endpoint listens, when the configuration's own default logger is in place.
func (Admin) Provision(caddy.Context) error {
	if ready := program().LogReady; ready != nil {
		ready()
	}
	return nil
}

// Routes returns the route. It is made before the apps, and outlives them, so each request looks up the app.
func (Admin) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{{Pattern: psPath, Handler: caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return servePS(w, r, activeOverview)
	})}}
}

var errNotServing = errors.New("no model server is running in this process yet: its configuration has no lm, or it is still starting")

func activeNode() (*node.Node, error) {
	app, err := caddy.ActiveContext().AppIfConfigured("lm")
	if err != nil && !errors.Is(err, caddy.ErrNotConfigured) {
		return nil, err
	}
	if err == nil {
		if n := app.(*App).running(); n != nil {
			return n, nil
		}
	}
	return nil, errNotServing
}

func activeOverview() (resource.Overview, error) {
	n, err := activeNode()
	if err != nil {
		return resource.Overview{}, err
	}
	o := manage.DescribeOverview(n.Overview(), n.Devices.List(), time.Now())
	o.Remotes = manage.DescribeRemotes(n.Remotes.List(), func(string) bool { return true })
	o.Nodes = manage.DescribeNodes(n)
	return o, nil
}

func servePS(w http.ResponseWriter, r *http.Request, overview func() (resource.Overview, error)) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: errors.New("method not allowed: use GET")}
	}
	o, err := overview()
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	return json.NewEncoder(w).Encode(o)
}
