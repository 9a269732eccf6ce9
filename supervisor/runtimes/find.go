package runtimes

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// Find returns the runtime of an engine to use: the configured executable, or else the selected runtime, or else one that somebody
// has made in the folder by hand, or else the first on PATH. It starts no process. If configured is empty and nothing is found, the
// error is or wraps ErrNone. If no file descriptor is left, the error says so (see package openfiles).
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

// TooOld says which runtime of an engine is in use, and what to do since it is too old for a model. configured is as in Find;
// version is what the runtime reports, if that is known. It is a sentence without its full stop, and without a capital.
func (s *Store) TooOld(engine, configured, version string) string {
	used, err := s.Find(engine, configured)
	if err != nil {
		return ""
	}
	version = cmp.Or(used.Version, version)
	what := fmt.Sprintf("%s %s, which is selected,", engine, version)
	if version == "" {
		what = used.Path
	}
	get := fmt.Sprintf("get the newest with \"lmcaddy runtime get %s\"", engine)
	if used.Source == Configured {
		get = "update it, or leave its path out of the Caddyfile and " + get
	}
	installed, _ := s.installed() // without them, the advice is to get one
	i := slices.IndexFunc(installed, func(r Runtime) bool {
		return r.Engine == engine && version != "" && compareVersions(r.Version, version) > 0
	})
	if i >= 0 { // they are in order, the newest first
		get = fmt.Sprintf("%s is installed: select it with \"lmcaddy runtime select %s\"", installed[i].Version, installed[i].Name)
	}
	return what + " is too old for this model; " + get
}

// The engines, by the names that GetOptions, Find and runtime.json have for them.
const (
	LlamaCpp = "llama.cpp" // llama-server, for models in the GGUF format
	MLXLM    = "mlx-lm"    // mlx_lm.server, for models in the MLX format
)

// ErrNone says that there is no runtime of an engine.
var ErrNone = errors.New("no runtime was found")

// program is what the store knows about an engine.
type program struct {
	engine    string
	server    string // the name of its executable on PATH
	selection string // the file that names the selected runtime
	setting   string // by which the Caddyfile names another executable
	advice    string // in addition to "runtime get"
	scripts   string // the folder of the executable in a virtual environment of Python; empty: it is in none
}

var (
	llamaCpp = program{
		engine: LlamaCpp, server: "llama-server", selection: "selected", setting: "path in `engine llama_server { path … }`",
	}
	mlxLM = program{
		engine: MLXLM, server: "mlx_lm.server", selection: "selected.mlx-lm", setting: "command in `engine mlx_lm { command … }`",
		advice: ", or set `engine mlx_lm { command … }` in the Caddyfile", scripts: "bin",
	}
	programs = []program{llamaCpp, mlxLM}
)

func programOf(engine string) (program, error) {
	for _, p := range programs {
		if p.engine == engine {
			return p, nil
		}
	}
	return program{}, fmt.Errorf("the engine %q is unknown to this version", engine)
}

func (p program) executable() string {
	if runtime.GOOS == "windows" {
		return p.server + ".exe"
	}
	return p.server
}

func (p program) lookOnPath() (Runtime, bool) {
	path, err := exec.LookPath(p.executable()) // fails if it is only found by "." in PATH
	if err != nil {
		return Runtime{}, false
	}
	if path, err = filepath.Abs(path); err != nil {
		return Runtime{}, false
	}
	return Runtime{Engine: p.engine, Path: path, Source: OnPath}, true
}

// lookByHand returns the server in a virtual environment that somebody else has made in the store's folder. Of several it is the one
// whose folder's name sorts last. The store's own environments have no scripts.
func (p program) lookByHand(dir string) (Runtime, bool) {
	if p.scripts == "" {
		return Runtime{}, false
	}
	entries, _ := os.ReadDir(dir) // sorted by name
	for _, entry := range slices.Backward(entries) {
		path := filepath.Join(dir, entry.Name(), p.scripts, p.executable())
		if checkName(entry.Name()) != nil || checkExecutable(path) != nil {
			continue
		}
		if path, err := filepath.Abs(path); err == nil {
			return Runtime{Engine: p.engine, Path: path, Source: Installed}, true
		}
	}
	return Runtime{}, false
}

func (p program) none() error {
	return &noneError{fmt.Sprintf("no %s was found: run \"lmcaddy runtime get %s\"%s", p.server, p.engine, p.advice)}
}

type noneError struct{ text string }

func (e *noneError) Error() string        { return e.text }
func (e *noneError) Is(target error) bool { return target == ErrNone }
