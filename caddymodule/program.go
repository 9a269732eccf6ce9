package caddymodule

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// Program holds what a program of our own does in addition to the modules. It affects the whole process, so a Caddy build
// that merely has the modules does none of it.
type Program struct {
	// Version is the program's version. Default: that of our module.
	Version string

	// ConfigFile is the file with the configuration that the program was started with; empty: none, or it isn't known.
	ConfigFile string

	// LogReady is called whenever a configuration has set up the default logger, just before the admin endpoint listens.
	LogReady func()

	// Serving is called when a configuration with sites has started, with their addresses as URLs, the node, and whether GET /v1/models
	// lists every model.
	Serving func(addresses []string, n *node.Node, listsAll bool)

	// PlainHTTP1 restricts sites without TLS to HTTP/1. By default, Caddy also offers protocols that require TLS, and warns
	// about that at every start.
	PlainHTTP1 bool
}

// inForce is the program passed to SetProgram, or one that does nothing.
var inForce atomic.Pointer[Program]

// SetProgram sets the program. The main package calls it before Caddy runs.
func SetProgram(p Program) { inForce.Store(&p) }

func program() Program {
	if p := inForce.Load(); p != nil {
		return *p
	}
	return Program{}
}

// module is the path of the module that this package belongs to.
const module = "github.com/lmcaddy/lmcaddy"

func versionOf() string { return cmp.Or(program().Version, moduleVersion()) }

// moduleVersion returns the version of our module in another program's build.
func moduleVersion() string {
	const unknown = "development"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	for _, dep := range info.Deps {
		if dep.Path != module {
			continue
		}
		if dep.Replace != nil {
			dep = dep.Replace
		}
		if dep.Version != "" && dep.Version != "(devel)" { // a checkout has these
			return dep.Version
		}
	}
	return unknown
}

// onServing passes the addresses of the configuration's sites to the program, once it has started.
func (a *App) onServing(ctx caddy.Context) error {
	serving := program().Serving
	if serving == nil {
		return nil
	}
	return onEvent(ctx, "started", func() {
		if addresses := addressesOf(ctx); len(addresses) > 0 {
			serving(addresses, a.node, a.settings.ListAll)
		}
	})
}

// addressesOf returns the addresses of a configuration's sites, as URLs.
func addressesOf(ctx caddy.Context) []string {
	addresses := []string{}
	for _, server := range serversOf(ctx) {
		addresses = append(addresses, addressesOfServer(server)...)
	}
	slices.Sort(addresses)
	return addresses
}

// leaveOutTLSProtocols makes sites without TLS offer HTTP/1 alone, as [Program].PlainHTTP1 says. It is called while the HTTP
// app is provisioned, when it is known which servers have TLS.
func leaveOutTLSProtocols(ctx caddy.Context) {
	for _, m := range ctx.Modules() {
		app, ok := m.(*caddyhttp.App)
		if !ok {
			continue
		}
		for _, server := range app.Servers {
			isDefault := len(server.Protocols) == 0 || slices.Equal(server.Protocols, []string{"h1", "h2", "h3"})
			if len(server.TLSConnPolicies) == 0 && server.ListenProtocols == nil && isDefault {
				server.Protocols = []string{"h1"}
			}
		}
	}
}

// StatusPath is the path on the home's socket that describes the server's process.
const StatusPath = "/lm/status"

// Process is the response to GET /lm/status.
type Process struct {
	Version   string    `json:"version"`
	Home      string    `json:"home"`
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
	Addresses []string  `json:"addresses"` // of its sites, as URLs; none while it is starting
	Pages     []string  `json:"pages"`     // of those, where browsers get the page, as URLs to open
	Sandbox   string    `json:"sandbox"`   // of new engines: its mechanism, "off", or "not available" and why
	// Engines are what would be started for a model that is loaded now; none while the server is starting.
	Engines []node.FoundEngine `json:"engines"`
}

var processStarted = time.Now()

// serveStatus answers GET /lm/status on the home's socket.
func serveStatus(w http.ResponseWriter, r *http.Request, socket string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	ctx, engines, sandbox := caddy.ActiveContext(), []node.FoundEngine{}, process.SandboxState()
	if n, err := activeNode(); err == nil {
		engines = n.Engines.Find()
	}
	if slices.ContainsFunc(engines, func(e node.FoundEngine) bool { return e.Sandbox == process.SandboxOff }) {
		sandbox = process.SandboxOff
	}
	_ = json.NewEncoder(w).Encode(Process{ // an error means that the client disconnected
		Version: versionOf(), Home: filepath.Dir(filepath.Dir(socket)), PID: os.Getpid(), StartedAt: processStarted,
		Addresses: addressesOf(ctx), Pages: pagesOf(sitesOf(ctx)),
		Sandbox: sandbox, Engines: engines,
	})
}
