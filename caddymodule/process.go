package caddymodule

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lmcaddy/lmcaddy/supervisor"
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
	Sandbox   string    `json:"sandbox"`   // of new engines: its mechanism, "off", or "not available" and why
}

var processStarted = time.Now()

// serveStatus answers GET /lm/status on the home's socket.
func serveStatus(w http.ResponseWriter, r *http.Request, socket string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Process{ // an error means that the client disconnected
		Version: cmp.Or(program().Version, moduleVersion()), Home: filepath.Dir(filepath.Dir(socket)), PID: os.Getpid(), StartedAt: processStarted, Addresses: addressesOf(caddy.ActiveContext()),
		Sandbox: activeSandbox(),
	})
}

// activeSandbox describes the sandbox in which the active configuration starts engines.
func activeSandbox() string {
	app, err := caddy.ActiveContext().AppIfConfigured("lm")
	if err == nil {
		for _, e := range app.(*App).settings.Engines {
			if e.Unconfined {
				return supervisor.SandboxOff
			}
		}
	}
	return supervisor.SandboxState()
}
