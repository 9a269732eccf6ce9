package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Where things are, as paths from the module's folder, in which its tests run.
const (
	defaultBinary   = "../bin/lmcaddy"
	defaultRuntimes = "../.cache/home/runtimes"
	shippedModel    = "../testdata/models/lmcaddy/tinychat/tinychat-f16.gguf"
)

// What the tests run, as absolute paths. Setup finds them.
var (
	binary   string
	runtimes string // a home's folder of runtimes; empty: llama-server is on PATH
	shipped  string
)

// Main runs the tests of a package in a folder of the module, after [Setup].
func Main(m *testing.M) {
	err := os.Chdir("..") // the harness uses paths relative to the module's folder
	if err == nil {
		err = Setup()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Setup finds the program, an engine and the model. It is called once, before any test: without one of them no test can
// prove anything, and tests must not be skipped.
func Setup() error {
	err := errors.Join(findBinary(), findEngine(), findModel())
	if _, noProc := os.Stat("/proc/self/stat"); noProc != nil {
		err = errors.Join(err, errors.New("there is no /proc: engines can be found on Linux alone"))
	}
	if err != nil {
		return fmt.Errorf("%w\nRun `make test` in the repository's folder: it sets everything up.", err)
	}
	return nil
}

func findBinary() (err error) {
	if binary, err = fromEnvironment("LMCADDY_BIN", defaultBinary); err != nil {
		return err
	}
	if _, err := exec.LookPath(binary); err != nil {
		return fmt.Errorf("no lmcaddy to test (LMCADDY_BIN names another): %w", err)
	}
	return nil
}

func findEngine() (err error) {
	if runtimes, err = fromEnvironment("LMCADDY_RUNTIMES", defaultRuntimes); err != nil {
		return err
	}
	if info, err := os.Stat(runtimes); err == nil && info.IsDir() {
		return nil
	}
	missing := runtimes
	runtimes = ""
	if _, err := exec.LookPath("llama-server"); err != nil {
		return fmt.Errorf("no llama-server: neither a folder %s (LMCADDY_RUNTIMES names another) nor one on PATH: %w", missing, err)
	}
	return nil
}

// llamaServer is the path of the engine.
func llamaServer() (executable string, err error) {
	if runtimes == "" {
		return exec.LookPath("llama-server")
	}
	return executableIn(runtimes)
}

// executableIn finds llama-server in a folder of runtimes.
func executableIn(dir string) (executable string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "llama-server" && e.Type().IsRegular() && (executable == "" || len(path) < len(executable)) {
			executable = path
		}
		return err
	})
	if err == nil && executable == "" {
		err = fmt.Errorf("the runtimes in %s have no llama-server", dir)
	}
	return executable, err
}

func findModel() (err error) {
	if shipped, err = filepath.Abs(shippedModel); err != nil {
		return err
	}
	_, err = os.Stat(shipped)
	return err
}

func fromEnvironment(variable, otherwise string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return filepath.Abs(path)
	}
	return filepath.Abs(otherwise)
}
