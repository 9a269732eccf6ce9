package runtimes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

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
	llamaCpp = program{engine: LlamaCpp, server: "llama-server", selection: "selected", setting: "path in `engine llama_server { path … }`"}
	mlxLM    = program{
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

// executable returns the name of the server's file.
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

// none returns the error of a Find without a result.
func (p program) none() error {
	return &noneError{fmt.Sprintf("no %s was found: run \"lmcaddy runtime get %s\"%s", p.server, p.engine, p.advice)}
}

type noneError struct{ text string }

func (e *noneError) Error() string        { return e.text }
func (e *noneError) Is(target error) bool { return target == ErrNone }
