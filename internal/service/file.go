package service

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

// mark is in every file that Install writes. A file without it is the user's own.
const mark = `Written by "lmcaddy service install"`

// put writes a definition, unless there is one that somebody else has written.
func put(path, text string, force bool) error {
	if err := checkOurs(path, force); err != nil {
		return err
	}
	return write(path, text)
}

// isOurs reports whether a file was written by Install, or doesn't exist.
func isOurs(path string) bool {
	there, err := os.ReadFile(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return strings.Contains(string(there), mark)
}

// checkOurs refuses to change what somebody else has written, unless that is forced.
func checkOurs(path string, force bool) error {
	if isOurs(path) || force {
		return nil
	}
	return fmt.Errorf("%s was not written by \"lmcaddy service install\": move it away, or use --force", path)
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // the folders of services are public
		return err
	}
	return atomicfile.WriteFile(path, 0o644, atomicfile.Text(text))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Caddyfile returns the Caddyfile of a service that has none yet.
func Caddyfile(goos string) string {
	log := ""
	if goos != "linux" { // elsewhere nothing keeps what a service prints
		log = `
	log {
		output file {env.LMCADDY_HOME}/logs/lmcaddy.log {
			roll_size 20MiB
			roll_keep 5
		}
	}`
	}
	return `# The configuration of the lmcaddy service. "lmcaddy service restart" applies changes.
{
	grace_period 15s` + log + `
	lm {
		list_models all # GET /v1/models lists every model, not only those that are loaded
	}
}

http://:1234 {
	bind 127.0.0.1 # Only this machine can connect. Before other machines may, put lm_auth before lm_api.
	lm_api
}
`
}

// WriteCaddyfile writes the Caddyfile of a service if there is none. It reports whether it did.
func (h Host) WriteCaddyfile(s Service) (bool, error) {
	path := h.Root + s.Config
	if exists(path) {
		return false, nil
	}
	if err := write(path, Caddyfile(h.OS)); err != nil {
		return false, err
	}
	if h.OS != "darwin" || h.UID != 0 || h.UserName == "root" {
		return true, nil
	}
	// Root has written it into the home of the user as whom a daemon of macOS runs.
	who, err := user.Lookup(h.UserName)
	if err != nil {
		return true, err
	}
	var uid, gid int
	if _, err := fmt.Sscan(who.Uid+" "+who.Gid, &uid, &gid); err != nil {
		return true, err
	}
	return true, os.Lchown(path, uid, gid)
}
