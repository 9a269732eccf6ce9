package runtimes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// Find returns the runtime of an engine to use: the configured executable, or else the selected runtime, or else one that somebody has
// made in the folder by hand, or else the first on PATH. It starts no process. If configured is empty and nothing is found, the error is or wraps ErrNone. If no file descriptor is
// left, the error says so (see package openfiles).
func (s *Store) Find(engine, configured string) (Runtime, error) {
	p, err := programOf(engine)
	if err != nil {
		return Runtime{}, err
	}
	if configured != "" {
		return p.findConfigured(configured)
	}
	selected, err := s.readSelection(p)
	switch {
	case openfiles.AreExhausted(err):
		return Runtime{}, fmt.Errorf("reading which runtime is selected: %w", err)
	case err != nil:
		s.log.Warn("reading which runtime is selected", "error", err)
	}
	var unfit error
	if selected != "" {
		found, err := s.loadOf(p, selected)
		if err == nil || openfiles.AreExhausted(err) {
			return found, err
		}
		s.log.Warn("the selected runtime can't be used, looking on PATH", "name", selected, "error", err)
		unfit = err
	}
	if found, ok := p.lookByHand(s.dir); ok {
		return found, nil
	}
	if found, ok := p.lookOnPath(); ok {
		return found, nil
	}
	if errors.Is(unfit, fs.ErrPermission) {
		return Runtime{}, fmt.Errorf("the selected %w", unfit)
	}
	installed, err := s.installed()
	if openfiles.AreExhausted(err) {
		return Runtime{}, err
	}
	isOther := func(r Runtime) bool { return r.Engine != engine }
	if installed = slices.DeleteFunc(installed, isOther); err == nil && len(installed) > 0 {
		return Runtime{}, fmt.Errorf("%w, or \"lmcaddy runtime select %s\" to use what is installed", p.none(), installed[0].Name)
	}
	return Runtime{}, p.none()
}

// loadOf is like load, and checks that the runtime is of a certain engine.
func (s *Store) loadOf(p program, name string) (Runtime, error) {
	found, err := s.load(name)
	if err == nil && found.Engine != p.engine {
		err = fmt.Errorf("runtime %s: it is of the engine %s", name, found.Engine)
	}
	return found, err
}

func (p program) findConfigured(configured string) (Runtime, error) {
	path, err := exec.LookPath(configured) // a bare name is looked up on PATH
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return Runtime{}, fmt.Errorf("the configured %s %s %s: correct the %s, or leave it out to use the selected runtime: %w",
			p.server, configured, unusable(err), p.setting, err)
	}
	return Runtime{Engine: p.engine, Path: path, Source: Configured}, nil
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

// findServer returns the path of the topmost llama-server within an unpacked tree.
func findServer(root string) (string, error) {
	server := llamaCpp.executable()
	var found string
	var depth int
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() != server || !entry.Type().IsRegular() {
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
		return "", fmt.Errorf("looking for %s: %w", server, err)
	}
	if found == "" {
		return "", fmt.Errorf("there is no %s in it", server)
	}
	// Archives made on Windows contain no modes.
	if err := os.Chmod(filepath.Join(root, found), 0o755); err != nil { //nolint:gosec // it must be executable
		return "", fmt.Errorf("making %s executable: %w", server, err)
	}
	return found, nil
}
