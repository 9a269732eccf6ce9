// Package caddymodule has the Caddy modules: the app "lm", the handlers lm_api and lm_auth, TLS permissions, the admin route,
// metrics, and the parsing of the Caddyfile. It turns a configuration into a node's settings, and passes requests to package
// api. Importing it changes nothing in Caddy but which modules there are.
//
// The node outlives configurations. An app opens the node when it starts, or finds it open, and pushes its settings; it pops
// them when it stops. The last app to be cleaned up closes the node. Requests that began under an older configuration are
// completed under it, on the same node.
package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
)

func init() { caddy.RegisterModule(new(App)) }

// App is the model server: its models, and the engines that run them.
type App struct {
	config.Settings

	log        *slog.Logger
	requestLog *slog.Logger // of single requests: see recorded
	settings   node.Settings
	gen        uint64
	warnOpen   func()               // warns about unprotected sites
	isExposed  func() bool          // others than the users of this machine are served
	grace      func() time.Duration // how long the sites' requests may continue when the server ends; 0: unlimited
	describing func() resource.Configuration
	opened     string // the key of the node in the pool; empty before Start
	pooled     *pooled
	node       *node.Node    // set before started is closed
	started    chan struct{} // closed when the node can be used
	requests   underway
	servers    map[*caddyhttp.Server]bool // servers whose connections are counted in requests
	retired    atomic.Bool                // a newer configuration has replaced this one
	replaced   chan struct{}              // closed when retired is set
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "lm", New: func() caddy.Module { return new(App) }}
}

// generation counts the apps that were started in this process.
var generation atomic.Uint64

// Provision reads the settings. It does no I/O, since it also runs for `lmcaddy validate`.
func (a *App) Provision(ctx caddy.Context) error {
	a.log, a.requestLog = recorded(ctx, "lm", false), recorded(ctx, "lm", true)
	a.warnOpen = func() {
		warnOpen(ctx, a.log)
		warnOnDemand(ctx, a.log)
	}
	a.isExposed = func() bool { return isExposed(ctx) }
	a.describing = func() resource.Configuration { return a.describe(ctx) }
	a.grace = func() time.Duration {
		app, err := ctx.AppIfConfigured("http")
		if err != nil {
			return DefaultGrace // there are no sites
		}
		return time.Duration(app.(*caddyhttp.App).GracePeriod)
	}
	a.started, a.replaced, a.servers = make(chan struct{}), make(chan struct{}), map[*caddyhttp.Server]bool{}
	replace := caddy.NewReplacer()
	if err := a.Resolve(replace); err != nil {
		return err
	}
	var err error
	if a.settings, err = a.NodeSettings(a.log, replace); err != nil {
		return err
	}
	for _, mistake := range a.mistakes() {
		a.log.Warn(mistake)
	}
	a.settings.Version = versionOf()
	if err := errors.Join(onEvent(ctx, "stopping", a.stopping), a.onServing(ctx)); err != nil {
		return err
	}
	return ctx.GetMetricsRegistry().Register(collector{a}) // each configuration has a registry, and one app
}

// mistakes returns what is surely meant otherwise in the configuration, as sentences without a full stop.
func (a *App) mistakes() []string { return append(slices.Clone(a.Notes), a.settings.Mistakes()...) }

// Validate checks what can be checked without starting.
func (a *App) Validate() error {
	if err := option.Check(&a.Settings); err != nil {
		return err
	}
	return a.settings.Validate()
}

// appOf returns the configuration's app. Caddy makes one with the defaults if the configuration has none.
func appOf(ctx caddy.Context) (*App, error) {
	app, err := ctx.App("lm")
	if err != nil {
		return nil, err
	}
	return app.(*App), nil
}

// Start applies the settings to the home's node.
func (a *App) Start() error {
	dir, err := home.FromEnvironment()
	if a.Home != "" {
		dir, err = home.Abs(a.Home)
	}
	if err == nil {
		dir, err = dir.Real()
	}
	if err != nil {
		return err
	}
	if a.pooled, err = a.open(dir); err != nil {
		return err
	}
	n := a.pooled.Node
	a.settings.Exposed = a.isExposed()
	a.gen = generation.Add(1)
	if err := n.Push(a.gen, a.settings); err != nil {
		return err
	}
	a.node = n
	close(a.started)
	a.pooled.socket.push(a.gen, a.service())
	a.warnOpen()
	return nil
}

// Stop withdraws the settings. The engines keep running: requests may still be in progress.
func (a *App) Stop() error {
	a.pop()
	return nil
}

// pop withdraws the settings. It may be called more than once.
func (a *App) pop() {
	if a.node != nil {
		a.node.Pop(a.gen)
		a.pooled.socket.pop(a.gen)
	}
}

// Cleanup releases the node after the last request of this configuration has been answered.
func (a *App) Cleanup() error {
	if a.opened == "" {
		return nil
	}
	a.pop()
	key := a.opened
	a.opened = ""
	return a.leave(key)
}

// Node returns the node. It waits until the app has started: the HTTP app may start before it.
func (a *App) Node(ctx context.Context) (*node.Node, error) {
	if n := a.running(); n != nil {
		return n, nil
	}
	select {
	case <-a.started:
		return a.node, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// running returns the node, or nil if the app hasn't started.
func (a *App) running() *node.Node {
	select {
	case <-a.started:
		return a.node
	default:
		return nil
	}
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.Validator    = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)

func init() {
	httpcaddyfile.RegisterGlobalOption("lm", parseApp)
	httpcaddyfile.RegisterHandlerDirective("lm_api", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next() // lm_api
		handler := new(Handler)
		return handler, option.Parse(h.Dispenser, "lm_api", handler)
	})
	httpcaddyfile.RegisterHandlerDirective("lm_auth", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next() // lm_auth
		auth := new(Auth)
		return auth, option.Parse(h.Dispenser, "lm_auth", auth)
	})
	// Each goes directly before metrics, which comes before reverse_proxy, so lm_auth, which is first, comes before lm_api and both of
	// these.
	httpcaddyfile.RegisterDirectiveOrder("lm_auth", httpcaddyfile.Before, "metrics")
	httpcaddyfile.RegisterDirectiveOrder("lm_api", httpcaddyfile.Before, "metrics")
}

// parseApp reads the global option lm. If it is given more than once, later ones add to earlier ones.
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	settings := new(config.Settings)
	if earlier, ok := existing.(httpcaddyfile.App); ok {
		if err := json.Unmarshal(earlier.Value, settings); err != nil {
			return nil, d.WrapErr(err)
		}
	}
	if err := settings.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "lm", Value: caddyconfig.JSON(settings, nil)}, nil
}
