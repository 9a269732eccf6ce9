// Package early does what must happen before other packages are initialized, which takes most of the time of a short command.
//
// It imports nothing but os and runtime/debug, so that it comes before Caddy's packages and those with many tables: of the packages that are
// ready, Go takes the first by its path, and they aren't ready before strings, sync or those of go.uber.org.
package early

import (
	"os"
	"runtime/debug"
)

// garbagePercent is how much garbage there may be to what is in use, until the server sets its own. What the packages make while they are
// initialized stays in use; with Go's 100 it is looked through several times, which is a third of such a command's processor time.
const garbagePercent = 400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	giveHome()
}

// giveHome keeps Caddy from logging a warning, as JSON and before anything else, where no home folder of the user is known, as in many
// containers. Caddy looks for a folder for its configuration while its package is initialized; lmcaddy chooses another later.
func giveHome() {
	if _, err := os.UserConfigDir(); err == nil {
		return
	}
	dir := os.Getenv("LMCADDY_HOME")
	if dir == "" {
		dir = "."
	}
	_ = os.Setenv("XDG_CONFIG_HOME", dir) // then Caddy warns
}
