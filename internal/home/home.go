// Package home names the folder that holds all of lmcaddy's state, and the places inside it.
//
//	models/<publisher>/<repo>/…   model files
//	downloads/                    what is being downloaded into it
//	runtimes/                     engines that `lmcaddy runtime get` has fetched, and which one is selected
//	lmcaddy.db                    the conversations
//	run/                          the lock, sockets and whatever else ends with the process (0700)
package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Variable is the environment variable that overrides the default folder, ~/.lmcaddy.
const Variable = "LMCADDY_HOME"

// Dir is a home folder, as an absolute path.
type Dir string

// FromEnvironment is the folder that $LMCADDY_HOME names, else ~/.lmcaddy. It need not exist.
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

// Abs makes a Dir of any path.
func Abs(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("home folder %s: %w", path, err)
	}
	return Dir(abs), nil
}

// Models is where models are kept: models/<publisher>/<repo>/….
func (d Dir) Models() string { return filepath.Join(string(d), "models") }

// Downloads is where downloads are written down, so that they go on after a restart.
func (d Dir) Downloads() string { return filepath.Join(string(d), "downloads") }

// Runtimes is where fetched engines are kept.
func (d Dir) Runtimes() string { return filepath.Join(string(d), "runtimes") }

// Run is the folder of the lock and of sockets.
func (d Dir) Run() string { return filepath.Join(string(d), "run") }

// Lock is the file whose lock makes a process the only one to use this home.
func (d Dir) Lock() string { return filepath.Join(d.Run(), "lock") }

// Catalog is what was read of the models, so that a start needn't read all of it again. It may be deleted.
func (d Dir) Catalog() string { return filepath.Join(string(d), "catalog.json") }

// Database is where conversations are stored, unless a configuration says otherwise.
func (d Dir) Database() string { return filepath.Join(string(d), "lmcaddy.db") }

// Engines is where the running engines are written down, so that they are found after a crash.
func (d Dir) Engines() string { return filepath.Join(d.Run(), "engines") }

// EngineCache is where engines keep what they compile for GPUs. It may be deleted.
func (d Dir) EngineCache() string { return filepath.Join(string(d), "cache", "engines") }

// AdminSocket is where Caddy's admin endpoint listens unless a configuration says otherwise.
func (d Dir) AdminSocket() string { return filepath.Join(d.Run(), "admin.sock") }

// Socket is where the running server's API is found by the commands.
func (d Dir) Socket() string { return filepath.Join(d.Run(), "lmcaddy.sock") }

// Make creates the home, its models folder and its run folder, each readable by this user alone where it is new.
func (d Dir) Make() error {
	for _, path := range []string{string(d), d.Run(), d.Models()} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return fmt.Errorf("making the home folder (LMCADDY_HOME chooses another): %w", err)
		}
	}
	return nil
}
