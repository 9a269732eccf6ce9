// Package runtimes finds, downloads and selects the engines (llama-server) that run models.
//
// A [Store] is a folder, $LMCADDY_HOME/runtimes, with this content:
//
//	selected                 the name of the selected runtime, on one line
//	llama.cpp-b11669-cpu/    a runtime: runtime.json, which names its executable, and the engine's files
//	.staging-1234567/        a running Get, or the remains of an interrupted one
//	.lock                    held while a staging folder is created or removed
//
// A runtime comes from the engine's official release, or if that can't be reached, from packages of a Debian-family system, which
// are unpacked into a folder of their own, without root and without using the host's libraries, except those of a GPU's driver. It
// is downloaded, unpacked and tested (`llama-server --version`, and for a GPU `--list-devices`) in a staging folder and then
// renamed, so it is installed as a whole or not at all. The lock of a staging folder tells a running Get from one that was killed.
//
// A Store has no state in memory: several processes may use the same folder. The goroutines of a Get have ended when it returns.
package runtimes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// Source says where a runtime was found.
type Source string

// The sources, in the order of Find.
const (
	Configured Source = "configured" // the path in the Caddyfile
	Installed  Source = "installed"  // a folder of the store
	OnPath     Source = "path"       // a folder of $PATH
)

// Runtime is an executable engine.
type Runtime struct {
	// Name is the folder in the store, such as "llama.cpp-b11669-cpu"; empty for a runtime from elsewhere.
	Name string `json:"name,omitempty"`
	// Engine is LlamaCpp or MLXLM.
	Engine string `json:"engine"`
	// Version is the version that the engine reported when it was installed, such as "b11669"; empty for a runtime from elsewhere.
	Version string `json:"version,omitempty"`
	// Variant is what the engine computes on: cpu, blas, vulkan, cuda, hip, metal or another one of a release; empty for a runtime
	// from elsewhere.
	Variant string `json:"variant,omitempty"`
	// Origin says where an installed runtime came from, for people.
	Origin string `json:"origin,omitempty"`
	// Path is the absolute path of the executable, or of a script that execs it.
	Path string `json:"path"`
	// Args are the arguments before the engine's own, such as "-m", "mlx_lm", "server" after a Python interpreter.
	Args []string `json:"args,omitempty"`
	// Source says where it was found.
	Source Source `json:"source"`
	// Selected is true for the selected runtime of its engine.
	Selected bool `json:"selected"`
	// Already is set by Get if the runtime had been installed before.
	Already bool `json:"-"`
}

// Store is a folder of runtimes.
type Store struct {
	dir string
	log *slog.Logger

	// Replaced by tests.
	hardware func(context.Context) hardware
	packages func(packageOptions) (packageSource, error)
	stall    time.Duration
}

// Open returns the Store in a folder, which need not exist. It does no I/O.
func Open(dir string, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{dir: dir, log: log, hardware: detectHardware, packages: distributionPackages(), stall: stallTimeout}
}

// List returns the installed runtimes of all engines, each engine's newest first, then those made by hand and the engines on PATH.
// It also removes the remains of interrupted Gets.
func (s *Store) List() ([]Runtime, error) {
	s.removeStale()
	list, err := s.installed()
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		if byHand, ok := p.lookByHand(s.dir); ok {
			list = append(list, byHand)
		}
		if onPath, ok := p.lookOnPath(); ok {
			list = append(list, onPath)
		}
	}
	return list, nil
}

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
		return cmp.Or(cmp.Compare(a.Engine, b.Engine), compareVersions(b.Version, a.Version), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

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
	p, err := programOf(m.Engine)
	if err != nil {
		return Runtime{}, fmt.Errorf("runtime %s: %w", name, err)
	}
	path := filepath.Join(folder, filepath.FromSlash(m.Executable))
	if err := checkExecutable(path); err != nil {
		return Runtime{}, fmt.Errorf("runtime %s: %w", name, err)
	}
	return Runtime{
		Name: name, Engine: m.Engine, Version: m.Version, Variant: m.Variant, Origin: m.Origin,
		Path: path, Args: m.Arguments, Source: Installed, Selected: name == s.selection(p),
	}, nil
}

// checkName rejects names that can't be runtimes in the store. The store's own files and staging folders begin with a dot, or
// have no runtime.json.
func checkName(name string) error {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\:`) || filepath.Base(name) != name {
		return fmt.Errorf("%q can't be the name of a runtime: \"lmcaddy runtime ls\" shows the names", name)
	}
	return nil
}

const manifestName = "runtime.json"

// manifest is the content of runtime.json. A folder without one isn't a runtime.
type manifest struct {
	Engine     string    `json:"engine"`
	Version    string    `json:"version"`
	Variant    string    `json:"variant"`
	Origin     string    `json:"origin"`
	Package    string    `json:"package,omitempty"` // the distribution's package that contains it, with its version
	Executable string    `json:"executable"`        // relative to the folder, with slashes
	Arguments  []string  `json:"arguments,omitempty"`
	FetchedAt  time.Time `json:"fetched_at"`
}

func (m manifest) name() string { return runtimeName(m.Engine, m.Version, m.Variant) }

func runtimeName(engine, version, variant string) string {
	return engine + "-" + version + "-" + variant
}

func readManifest(folder string) (manifest, error) {
	var m manifest
	text, err := os.ReadFile(filepath.Join(folder, manifestName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return m, fmt.Errorf("not a runtime: it has no %s", manifestName)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("reading %s: %w", manifestName, err)
	}
	if !filepath.IsLocal(filepath.FromSlash(m.Executable)) {
		return m, fmt.Errorf("%s names an executable outside its folder: %q", manifestName, m.Executable)
	}
	return m, nil
}

// RootOf returns the folder of the runtime to which an executable belongs, wherever that folder is: the one that contains it, or the
// target of the links to it, and whose runtime.json names it. It is empty for any other executable.
func RootOf(executable string) string {
	real, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return ""
	}
	for folder := filepath.Dir(real); folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		m, err := readManifest(folder)
		if err == nil && filepath.Join(folder, filepath.FromSlash(m.Executable)) == real {
			return folder
		}
	}
	return ""
}

func (m manifest) write(folder string) error {
	return atomicfile.WriteFile(filepath.Join(folder, manifestName), 0o644, atomicfile.JSON(m))
}

// packaged returns the name of the runtime of a variant that was made from a package, named with its version, or "".
func (s *Store) packaged(pkg, variant string) string {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return ""
	}
	for _, entry := range entries {
		m, err := readManifest(filepath.Join(s.dir, entry.Name()))
		if err != nil || m.Package != pkg || m.Variant != variant {
			continue
		}
		if _, err := s.load(entry.Name()); err == nil {
			return entry.Name()
		}
	}
	return ""
}

// notePackage records the package that contains the same version as an installed runtime.
func (s *Store) notePackage(name, pkg string) error {
	folder := filepath.Join(s.dir, name)
	m, err := readManifest(folder)
	if err != nil || m.Package == pkg {
		return err
	}
	m.Package = pkg
	return m.write(folder)
}

// compareVersions compares versions such as "b11669" and "0.31.3" by their numbers.
func compareVersions(a, b string) int { return slices.Compare(numbers(a), numbers(b)) }

func numbers(version string) []int {
	fields := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	found := make([]int, len(fields))
	for i, field := range fields {
		found[i], _ = strconv.Atoi(field) // too large a number is the largest
	}
	return found
}

// selection returns the name of the selected runtime of an engine, or "".
func (s *Store) selection(p program) string {
	name, err := s.readSelection(p)
	if err != nil {
		s.log.Warn("reading which runtime is selected", "error", err)
	}
	return name
}

// readSelection is like selection, but returns the error. It is no error if nothing is selected.
func (s *Store) readSelection(p program) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, p.selection))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	name := strings.TrimSpace(string(text))
	if err != nil || checkName(name) != nil {
		return "", err
	}
	return name, nil
}

// Select selects an installed runtime for Find, instead of another one of its engine. The change is atomic.
func (s *Store) Select(name string) error {
	found, err := s.load(name)
	if err != nil {
		return s.unknown(name, err)
	}
	p, err := programOf(found.Engine)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(s.dir, p.selection), 0o600, atomicfile.Text(name+"\n")); err != nil {
		return fmt.Errorf("selecting runtime %s: %w", name, err)
	}
	return nil
}

// Remove deletes an installed runtime. If it was selected, none of its engine is selected afterwards.
func (s *Store) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	folder := filepath.Join(s.dir, name)
	m, err := readManifest(folder)
	if err != nil {
		return s.unknown(name, err)
	}
	// A rename is atomic, unlike deleting file by file.
	stage, err := s.newStaging(context.Background())
	if err != nil {
		return fmt.Errorf("removing runtime %s: %w", name, err)
	}
	defer stage.discard()
	if err := os.Rename(folder, filepath.Join(stage.path, "removed")); err != nil {
		return fmt.Errorf("removing runtime %s (is it in use?): %w", name, err)
	}
	p, err := programOf(m.Engine)
	if err != nil || s.selection(p) != name {
		return nil // nothing else can be selected
	}
	if err := os.Remove(filepath.Join(s.dir, p.selection)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clearing the selection: %w", err)
	}
	return nil
}

func (s *Store) unknown(name string, cause error) error {
	if checkName(name) != nil {
		return cause
	}
	list, err := s.installed()
	if err != nil {
		return errors.Join(cause, err)
	}
	if len(list) == 0 {
		return fmt.Errorf("no runtime is installed: run \"lmcaddy runtime get llama.cpp\" first: %w", cause)
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Name
	}
	if _, err := os.Lstat(filepath.Join(s.dir, name)); errors.Is(err, fs.ErrNotExist) && !slices.Contains(names, name) {
		return fmt.Errorf("there is no runtime %s; installed: %s", name, strings.Join(names, ", "))
	}
	return fmt.Errorf("%w; installed: %s", cause, strings.Join(names, ", "))
}
