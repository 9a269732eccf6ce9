package runtimes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// serverName returns the name of the executable in archives and on PATH.
func serverName() string {
	if runtime.GOOS == "windows" {
		return "llama-server.exe"
	}
	return "llama-server"
}

// Find returns the llama-server to use: the configured one, or else the selected one, or else the first on PATH. It starts no
// process. If configured is empty and nothing is found, the error is or wraps ErrNone. If no file descriptor is left, the error
// says so (see package openfiles).
func (s *Store) Find(configured string) (Runtime, error) {
	if configured != "" {
		return findConfigured(configured)
	}
	selected, err := s.readSelection()
	switch {
	case openfiles.AreExhausted(err):
		return Runtime{}, fmt.Errorf("reading which runtime is selected: %w", err)
	case err != nil:
		s.log.Warn("reading which runtime is selected", "error", err)
	}
	var unfit error
	if selected != "" {
		found, err := s.load(selected)
		if err == nil || openfiles.AreExhausted(err) {
			return found, err
		}
		s.log.Warn("the selected runtime can't be used, looking on PATH", "name", selected, "error", err)
		unfit = err
	}
	if found, ok := lookOnPath(); ok {
		return found, nil
	}
	if errors.Is(unfit, fs.ErrPermission) {
		return Runtime{}, fmt.Errorf("the selected %w", unfit)
	}
	installed, err := s.installed()
	if openfiles.AreExhausted(err) {
		return Runtime{}, err
	}
	if err == nil && len(installed) > 0 {
		return Runtime{}, fmt.Errorf("%w, or \"lmcaddy runtime select %s\" to use what is installed", ErrNone, installed[0].Name)
	}
	return Runtime{}, ErrNone
}

func findConfigured(configured string) (Runtime, error) {
	path, err := exec.LookPath(configured) // a bare name is looked up on PATH
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return Runtime{}, fmt.Errorf("the configured llama-server %s %s: correct the path in `engine llama_server { path … }`, "+
			"or leave it out to use the selected runtime: %w", configured, unusable(err), err)
	}
	return Runtime{Engine: LlamaCpp, Path: path, Source: Configured}, nil
}

// unusable explains why a path can't be executed.
func unusable(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return "doesn't exist"
	case errors.Is(err, syscall.EISDIR):
		return "is a folder"
	case errors.Is(err, fs.ErrPermission):
		return "isn't executable (chmod +x makes it so)"
	default:
		return "can't be used"
	}
}

// checkExecutable checks cheaply that path can be executed.
func checkExecutable(path string) error {
	if _, err := exec.LookPath(path); err != nil {
		return fmt.Errorf("its executable %s %s: %w", filepath.Base(path), unusable(err), err)
	}
	return nil
}

func lookOnPath() (Runtime, bool) {
	path, err := exec.LookPath(serverName()) // fails if it is only found by "." in PATH
	if err != nil {
		return Runtime{}, false
	}
	if path, err = filepath.Abs(path); err != nil {
		return Runtime{}, false
	}
	return Runtime{Engine: LlamaCpp, Path: path, Source: OnPath}, true
}

// findServer returns the path of the topmost llama-server within an unpacked tree.
func findServer(root string) (string, error) {
	var found string
	var depth int
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() != serverName() || !entry.Type().IsRegular() {
			return nil
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d := strings.Count(relative, string(filepath.Separator)); found == "" || d < depth {
			found, depth = relative, d
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", serverName(), err)
	}
	if found == "" {
		return "", fmt.Errorf("there is no %s in it", serverName())
	}
	// Archives made on Windows contain no modes.
	if err := os.Chmod(filepath.Join(root, found), 0o755); err != nil { //nolint:gosec // it must be executable
		return "", fmt.Errorf("making %s executable: %w", serverName(), err)
	}
	return found, nil
}
