// Package home names the folder with all of lmcaddy's state, and its contents.
//
//	models/<publisher>/<repo>/…   model files
//	downloads/                    the state of downloads
//	runtimes/                     engines installed by `lmcaddy runtime get`, and which one is selected
//	mcp.json                      the MCP servers whose tools chats may use; written by its user
//	lmcaddy.db                    conversations, tokens and usage
//	warm/                         states of prompts, which engines have written (0700)
//	run/                          the lock, sockets and other files of the running process (0700)
package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Variable is the environment variable that replaces the default folder, ~/.lmcaddy.
const Variable = "LMCADDY_HOME"

// Dir is the absolute path of a home folder.
type Dir string

// FromEnvironment returns the folder in $LMCADDY_HOME, or ~/.lmcaddy. A ~ in the variable, which no shell has expanded, is the user's
// folder. The folder need not exist. The error is an *[UnusableError], and comes with the folder, if that can't be a home.
func FromEnvironment() (Dir, error) {
	path := Expand(os.Getenv(Variable))
	if path == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("no home folder is known for this user: set LMCADDY_HOME to a folder of your choice")
		}
		path = filepath.Join(user, ".lmcaddy")
	}
	dir, err := Abs(path)
	if err == nil {
		err = dir.check()
	}
	return dir, err
}

// Abs returns the Dir for a path.
func Abs(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("home folder %s: %w", path, err)
	}
	return Dir(abs), nil
}

// UnusableError means that a folder can't be a home.
type UnusableError struct {
	Home   Dir
	reason string
}

func (e *UnusableError) Error() string {
	return fmt.Sprintf("%q can't be the home folder: %s. Choose another with LMCADDY_HOME", string(e.Home), e.reason)
}

// check returns an error if there is something that can't be a home.
func (d Dir) check() error {
	info, err := os.Stat(string(d))
	_, isLink := os.Readlink(string(d))
	switch {
	case errors.Is(err, fs.ErrNotExist) && isLink == nil:
		return &UnusableError{d, "it is a link to a folder that doesn't exist"}
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &UnusableError{d, reasonOf(err)}
	case !info.IsDir():
		return &UnusableError{d, "it is a file"}
	}
	folder, err := os.Open(string(d))
	if err == nil {
		_, err = folder.Stat()
		_ = folder.Close()
	}
	switch owner := otherOwner(info); {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission) && owner != "":
		return &UnusableError{d, fmt.Sprintf("it belongs to %s, and this user may not look into it: type this as that user (sudo -u %s)",
			owner, owner)}
	}
	return &UnusableError{d, reasonOf(err)}
}

// reasonOf returns what is wrong with a path, without the path.
func reasonOf(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err.Error()
	}
	return err.Error()
}

// Models is the folder of models: models/<publisher>/<repo>/….
func (d Dir) Models() string { return filepath.Join(string(d), "models") }

// Downloads is the folder for the state of downloads, which are resumed after a restart.
func (d Dir) Downloads() string { return filepath.Join(string(d), "downloads") }

// Runtimes is the folder of installed engines.
func (d Dir) Runtimes() string { return filepath.Join(string(d), "runtimes") }

// Run is the folder of the lock and the sockets.
func (d Dir) Run() string { return filepath.Join(string(d), "run") }

// Lock is the file that is locked by the process that uses this home.
func (d Dir) Lock() string { return filepath.Join(d.Run(), "lock") }

// Catalog is the file that caches the models' headers. It may be deleted.
func (d Dir) Catalog() string { return filepath.Join(string(d), "catalog.json") }

// Database is the default file for conversations.
func (d Dir) Database() string { return filepath.Join(string(d), "lmcaddy.db") }

// Warm is the folder of saved states of prompts. It may be deleted.
func (d Dir) Warm() string { return filepath.Join(string(d), "warm") }

// Engines is the file that lists the running engines, so that they can be ended after a crash.
func (d Dir) Engines() string { return filepath.Join(d.Run(), "engines") }

// EngineCache is the folder where engines cache code compiled for GPUs. It may be deleted.
func (d Dir) EngineCache() string { return filepath.Join(string(d), "cache", "engines") }

// MCP is the file that lists the MCP servers.
func (d Dir) MCP() string { return filepath.Join(string(d), "mcp.json") }

// Names is the file with the names that clients have given models.
func (d Dir) Names() string { return filepath.Join(string(d), "names.json") }

// Templates is the file that caches what models' chat templates make of requests. It may be deleted.
func (d Dir) Templates() string { return filepath.Join(string(d), "cache", "templates.json") }

// MCPServers is the folder that lists the running MCP servers, so that they can be ended after a crash.
func (d Dir) MCPServers() string { return filepath.Join(d.Run(), "mcp") }

// AdminSocket is the default socket of Caddy's admin endpoint.
func (d Dir) AdminSocket() string { return filepath.Join(d.Run(), "admin.sock") }

// Socket is the socket of the server's API, for the commands.
func (d Dir) Socket() string { return filepath.Join(d.Run(), "lmcaddy.sock") }

// Make creates the home, its models folder and its run folder. New folders are readable by this user only, and a home that others can
// enter is closed to them. The error is an *[UnusableError] if this user can't do that.
func (d Dir) Make() error {
	for _, path := range []string{string(d), d.Run(), d.Models()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("making the home folder (LMCADDY_HOME chooses another): %w", err)
		}
		if path != string(d) {
			continue
		}
		if err := d.close(); err != nil {
			return err
		}
	}
	return nil
}

// MaxSocketPath is the longest path, in bytes, that a Unix socket may have on every system.
const MaxSocketPath = 103

// Absolute returns a path that stays right if the working directory changes. A ~ is expanded as by [Expand].
func Absolute(path string) string {
	if abs, err := filepath.Abs(Expand(path)); err == nil {
		return abs
	}
	return path
}

// Expand replaces a ~ at the beginning of a path with the user's folder, as a shell does.
func Expand(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && !os.IsPathSeparator(rest[0]) {
		return path
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(user, rest)
}

// Real makes the folder, and returns its path without symbolic links: two names of one folder are one home.
func (d Dir) Real() (Dir, error) {
	if err := d.Make(); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(string(d))
	return Dir(real), err
}
