// Package home names the folder with all of lmcaddy's state, and its contents.
//
//	models/<publisher>/<repo>/…   model files
//	downloads/                    the state of downloads
//	runtimes/                     engines installed by `lmcaddy runtime get`, and which one is selected
//	mcp.json                      the MCP servers whose tools chats may use; written by its user
//	lmcaddy.db                    conversations, tokens and usage
//	run/                          the lock, sockets and other files of the running process (0700)
package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Variable is the environment variable that replaces the default folder, ~/.lmcaddy.
const Variable = "LMCADDY_HOME"

// Dir is the absolute path of a home folder.
type Dir string

// FromEnvironment returns the folder in $LMCADDY_HOME, or ~/.lmcaddy. It need not exist.
func FromEnvironment() (Dir, error) {
	if dir := os.Getenv(Variable); dir != "" {
		return Abs(dir)
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("no home folder is known for this user: set LMCADDY_HOME to a folder of your choice")
	}
	return Dir(filepath.Join(user, ".lmcaddy")), nil
}

// Abs returns the Dir for a path.
func Abs(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("home folder %s: %w", path, err)
	}
	return Dir(abs), nil
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

// Engines is the file that lists the running engines, so that they can be ended after a crash.
func (d Dir) Engines() string { return filepath.Join(d.Run(), "engines") }

// EngineCache is the folder where engines cache code compiled for GPUs. It may be deleted.
func (d Dir) EngineCache() string { return filepath.Join(string(d), "cache", "engines") }

// MCP is the file that lists the MCP servers.
func (d Dir) MCP() string { return filepath.Join(string(d), "mcp.json") }

// MCPServers is the folder that lists the running MCP servers, so that they can be ended after a crash.
func (d Dir) MCPServers() string { return filepath.Join(d.Run(), "mcp") }

// AdminSocket is the default socket of Caddy's admin endpoint.
func (d Dir) AdminSocket() string { return filepath.Join(d.Run(), "admin.sock") }

// Socket is the socket of the server's API, for the commands.
func (d Dir) Socket() string { return filepath.Join(d.Run(), "lmcaddy.sock") }

// Make creates the home, its models folder and its run folder. New folders are readable by this user only.
func (d Dir) Make() error {
	for _, path := range []string{string(d), d.Run(), d.Models()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("making the home folder (LMCADDY_HOME chooses another): %w", err)
		}
	}
	return nil
}
