// Package early does what must happen before other packages are initialized, which takes most of the time of a short command.
//
// It imports little, so that it comes before Caddy's packages: of the packages that are ready, Go takes the first by its path, and they
// aren't ready before those of go.uber.org.
package early

import (
	"cmp"
	"os"
	"runtime/debug"
)

// garbagePercent is how much garbage there may be to what is in use, until the server sets its own. What the packages make while they are
// initialized stays in use; with Go's 100 it is looked through several times.
const garbagePercent = 400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	// Where no home folder of the user is known, as in many containers, Caddy would log a warning, as JSON and before anything else. It
	// looks for a folder for its configuration while its package is initialized; lmcaddy chooses another later.
	if _, err := os.UserConfigDir(); err != nil {
		_ = os.Setenv("XDG_CONFIG_HOME", cmp.Or(os.Getenv("LMCADDY_HOME"), ".")) // if it fails, Caddy warns
	}
}
