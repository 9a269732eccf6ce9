// Package runtimes finds, fetches and selects the engines (llama-server) that run models.
//
// A [Store] is one folder, $LMCADDY_HOME/runtimes, of this shape:
//
//	selected                 the name of the selected runtime, on one line
//	llama.cpp-b11669-cpu/    one runtime: runtime.json, which names its executable, and the engine's own files
//	.staging-1234567/        a Get under way, or what an interrupted one left
//	.lock                    held for a moment while a staging folder appears or a stale one goes
//
// A runtime comes from the engine's official release, or, where that can't be reached, from the packages of a
// Debian-family system, unpacked side by side without root and without touching the host's libraries. Everything is
// fetched, unpacked and proven (`llama-server --version`) inside a staging folder and then renamed into place, so a
// runtime is there whole or not at all. A staging folder's own lock tells a Get that still runs from one that was killed.
//
// A Store holds no state of its own: several processes may use the same folder at once. The goroutines that Get starts
// have ended when it returns.
package runtimes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// LlamaCpp is the engine that can be fetched.
const LlamaCpp = "llama.cpp"

// ErrNone is returned by Find when there is no llama-server at all.
var ErrNone = errors.New(`no llama-server was found: run "lmcaddy runtime get llama.cpp"`)

// Source says how a runtime was found.
type Source string

// The places that Find looks in, in its order.
const (
	Configured Source = "configured" // the path that the Caddyfile gives
	Installed  Source = "installed"  // a folder of the store
	OnPath     Source = "path"       // a folder of $PATH
)

// Runtime is an engine that can be started.
type Runtime struct {
	// Name is the folder's name in the store, like "llama.cpp-b11669-cpu"; empty for one found elsewhere.
	Name string `json:"name,omitempty"`
	// Engine is "llama.cpp".
	Engine string `json:"engine"`
	// Version is what the engine said of itself when it was installed, like "b11669"; empty for one found elsewhere.
	Version string `json:"version,omitempty"`
	// Variant is what the engine computes on: cpu, vulkan, cuda or metal; empty for one found elsewhere.
	Variant string `json:"variant,omitempty"`
	// Origin says where an installed runtime was got, for people.
	Origin string `json:"origin,omitempty"`
	// Path is the absolute path of the executable, or of a script that becomes it by exec.
	Path string `json:"path"`
	// Source says how it was found.
	Source Source `json:"source"`
	// Selected is true for the one that Select chose.
	Selected bool `json:"selected"`
	// Already is set by Get when this runtime was installed before, so that nothing was replaced.
	Already bool `json:"-"`
}

// Store is a folder of runtimes.
type Store struct {
	dir string
	log *slog.Logger

	// Tests put others in place of these.
	hardware func(context.Context) hardware
	packages func(context.Context, *staging, packaged, func(Progress)) (staged, error)
	stall    time.Duration
}

// Open makes a Store of a folder, which need not exist. It reads and writes nothing.
func Open(dir string, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{dir: dir, log: log, hardware: detectHardware, packages: distributionPackages(), stall: stallTimeout}
}

// List returns the installed runtimes, the newest first, then the llama-server on PATH if there is one.
// It also clears away what an interrupted Get left behind.
func (s *Store) List() ([]Runtime, error) {
	s.removeStale()
	list, err := s.installed()
	if err != nil {
		return nil, err
	}
	if onPath, ok := lookOnPath(); ok {
		list = append(list, onPath)
	}
	return list, nil
}

// installed returns the runtimes of the folder, the newest first.
func (s *Store) installed() ([]Runtime, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the runtimes: %w", err)
	}
	var list []Runtime
	for _, entry := range entries {
		if checkName(entry.Name()) != nil || entry.Type().IsRegular() {
			continue
		}
		found, err := s.load(entry.Name())
		if openfiles.AreExhausted(err) {
			return nil, fmt.Errorf("listing the runtimes: %w", err)
		}
		if err != nil {
			s.log.Debug("not a runtime", "folder", entry.Name(), "error", err)
			continue
		}
		list = append(list, found)
	}
	slices.SortStableFunc(list, func(a, b Runtime) int {
		return cmp.Or(cmp.Compare(buildNumber(b.Version), buildNumber(a.Version)), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// load reads one runtime's runtime.json and checks that its executable is there.
func (s *Store) load(name string) (Runtime, error) {
	if err := checkName(name); err != nil {
		return Runtime{}, err
	}
	folder, err := filepath.Abs(filepath.Join(s.dir, name))
	if err != nil {
		return Runtime{}, fmt.Errorf("runtime %s: %w", name, err)
	}
	m, err := readManifest(folder)
	if err != nil {
		return Runtime{}, fmt.Errorf("runtime %s: %w", name, err)
	}
	path := filepath.Join(folder, filepath.FromSlash(m.Executable))
	if err := checkExecutable(path); err != nil {
		return Runtime{}, fmt.Errorf("runtime %s: %w", name, err)
	}
	return Runtime{
		Name: name, Engine: m.Engine, Version: m.Version, Variant: m.Variant, Origin: m.Origin,
		Path: path, Source: Installed, Selected: name == s.selection(),
	}, nil
}

// checkName refuses every name that isn't that of a folder directly inside the store. The store's own files and its
// staging folders begin with a dot, or have no runtime.json.
func checkName(name string) error {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\:`) || filepath.Base(name) != name {
		return fmt.Errorf("%q can't be the name of a runtime: \"lmcaddy runtime ls\" shows the names", name)
	}
	return nil
}
