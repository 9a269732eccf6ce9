package caddymodule

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// FeedWatchdog tells systemd again and again that the process works, if its unit has WatchdogSec; else it does nothing. Works
// means: the scheduler of each open node answers. If one hangs, systemd ends the process and starts it again. Main calls it once,
// in a process that serves. (Caddy itself tells systemd when it is ready, reloads and stops, but feeds no watchdog.)
func FeedWatchdog() {
	every, ok := watchdogPeriod(os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID"), os.Getpid())
	socket := os.Getenv("NOTIFY_SOCKET")
	if !ok || socket == "" {
		return
	}
	go watch(time.Tick(every), answers, func() { // as sd_notify does; systemd learns from its absence that something is wrong
		if conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"}); err == nil {
			_, _ = conn.Write([]byte("WATCHDOG=1"))
			_ = conn.Close()
		}
	})
}

// watchdogPeriod returns how often to tell systemd: three times in the time after which it loses patience.
func watchdogPeriod(microseconds, pid string, own int) (time.Duration, bool) {
	n, err := strconv.ParseInt(microseconds, 10, 64)
	if err != nil || n < 1000 || n > 1e15 || pid != "" && pid != strconv.Itoa(own) {
		return 0, false
	}
	return time.Duration(n) * time.Microsecond / 3, true
}

// watch calls works at each tick, and then feed. A call of works that never returns doesn't keep later ones from being made.
func watch(ticks <-chan time.Time, works, feed func()) {
	for range ticks {
		go func() {
			works()
			feed()
		}()
	}
}

// answers returns when the schedulers of all open nodes have answered.
func answers() {
	nodes.Range(func(_, value any) bool {
		value.(*pooled).Overview()
		return true
	})
}
