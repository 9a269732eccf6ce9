package venv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

const (
	// oldest and newest are the minor versions of Python 3 that MLX and what mlx-lm requires are known to be published for.
	oldest, newest = 10, 14
	// probeTimeout bounds the start of one interpreter.
	probeTimeout = 30 * time.Second
	// applePython opens a dialog if Apple's developer tools aren't installed. If they are, it is an old version.
	applePython = "/usr/bin/python3"
)

// names are the interpreters that are tried in each folder of PATH: a system's python3 may be too old.
var names = []string{"python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"}

// probeScript prints the path of the interpreter, its version, and the machine it was built for. It fails if it can't make environments.
const probeScript = `import sys, platform
print(sys.executable, *sys.version_info[:2], platform.machine(), sep="\n", flush=True)
import venv, ensurepip`

// Python is an interpreter that can make environments.
type Python struct {
	Path    string // absolute
	Version string // such as "3.12"
	isNew   bool   // packages may not be published for it yet
}

// NoPythonError says that there is no suitable Python, and how to get one.
type NoPythonError struct {
	Unfit []string // what was found, and why it isn't suitable
}

func (e *NoPythonError) Error() string {
	text := fmt.Sprintf("Python 3.%d or later is needed, with its modules venv and ensurepip, and none is on PATH", oldest)
	if len(e.Unfit) > 0 {
		text += " (" + strings.Join(e.Unfit, "; ") + ")"
	}
	return text + ": install it (macOS: brew install python; Debian and Ubuntu: apt install python3 python3-venv) and try again"
}

// Find returns the first suitable Python on PATH, a very new one only if there is no other. If there is none, the error is a
// *NoPythonError.
func Find(ctx context.Context) (Python, error) {
	var unfit []string
	var fallback Python
	unwelcome := ""
	if runtime.GOOS == "darwin" {
		unwelcome = applePython
	}
	for _, path := range candidates(filepath.SplitList(os.Getenv("PATH")), unwelcome) {
		found, err := probe(ctx, path, runtime.GOOS)
		switch {
		case err == nil && !found.isNew:
			return found, nil
		case err == nil && fallback.Path == "":
			fallback = found
		case err == nil:
		case ctx.Err() != nil, openfiles.AreExhausted(err):
			return Python{}, err
		default:
			unfit = append(unfit, fmt.Sprintf("%s %s", path, err))
		}
	}
	if fallback.Path != "" {
		return fallback, nil
	}
	return Python{}, &NoPythonError{unfit}
}

// candidates returns the interpreters in folders, in the order in which they are tried: an unwelcome one last.
func candidates(folders []string, unwelcome string) []string {
	var found, last, seen []string
	for _, folder := range folders {
		real, err := filepath.EvalSymlinks(folder)
		if err != nil || !filepath.IsAbs(folder) || slices.Contains(seen, real) {
			continue
		}
		seen = append(seen, real)
		for _, name := range names {
			path, err := exec.LookPath(filepath.Join(folder, name))
			switch {
			case err != nil:
			case path == unwelcome:
				last = append(last, path)
			default:
				found = append(found, path)
			}
		}
	}
	return append(found, last...)
}

// probe starts an interpreter. The error says what it is or does instead.
func probe(ctx context.Context, path, system string) (Python, error) {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var told []string
	words, err := run(limited, cleanEnvironment(os.Environ(), os.TempDir()), func(line string) { told = append(told, line) }, path, "-I", "-c", probeScript)
	if ctx.Err() != nil || openfiles.AreExhausted(err) {
		return Python{}, err
	}
	if len(told) != 4 {
		return Python{}, fmt.Errorf("doesn't start: %w", failure(err, words))
	}
	var major, minor int
	if _, scanned := fmt.Sscan(told[1]+" "+told[2], &major, &minor); scanned != nil || major != 3 || minor < oldest {
		return Python{}, fmt.Errorf("is version %s.%s", told[1], told[2])
	}
	if machine := told[3]; system == "darwin" && machine != "arm64" {
		return Python{}, fmt.Errorf("is made for %s, not for Apple's processors", machine)
	}
	if err != nil {
		return Python{}, errors.New("has no modules venv and ensurepip")
	}
	return Python{Path: told[0], Version: told[1] + "." + told[2], isNew: minor > newest}, nil
}
