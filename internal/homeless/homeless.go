// Package homeless keeps Caddy from logging a warning, as JSON and before anything else, where no home folder of the user is known, as
// in many containers. Caddy looks for a folder for its configuration while its package is initialized; lmcaddy chooses another later.
//
// The package imports nothing but os, so that it is initialized before Caddy's: of the packages that are ready, Go takes the first by
// its path, and Caddy's isn't ready before those of go.uber.org.
package homeless

import "os"

func init() {
	if _, err := os.UserConfigDir(); err == nil {
		return
	}
	dir := os.Getenv("LMCADDY_HOME")
	if dir == "" {
		dir = "."
	}
	_ = os.Setenv("XDG_CONFIG_HOME", dir) // then Caddy warns
}
