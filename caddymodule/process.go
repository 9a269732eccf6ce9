package caddymodule

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

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
