package venv

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

const (
	// oldest and newest are the minor versions of Python 3 that MLX and what mlx-lm requires are known to be published for.
	oldest, newest = 10, 14
	// probeTimeout bounds the start of one interpreter.
	probeTimeout = 30 * time.Second
	// lastWords is how many lines of a failed program's standard error are quoted.
	lastWords = 5
)

// names are the interpreters that are tried. The plain name comes last: it may be too new, or on a Mac the one that asks whether to install
// Apple's developer tools.
var names = []string{"python3.13", "python3.12", "python3.11", "python3.10", "python3.14", "python3"}

// probeScript fails in an interpreter that is too old, is made for other processors than this Mac's, or can't make environments.
const probeScript = `import sys, platform, venv, ensurepip
sys.exit(sys.version_info < (3, 10) or sys.platform == "darwin" and platform.machine() != "arm64")`

// ErrNoPython says that there is no suitable Python, and how to get one.
var ErrNoPython = fmt.Errorf("there is neither uv on PATH nor Python 3.%d or later with its modules venv and ensurepip: "+
	"install one (macOS: brew install python; Debian and Ubuntu: apt install python3 python3-venv) and try again", oldest)

// Find returns the path of a suitable Python on PATH. If there is none, the error is ErrNoPython.
func Find(ctx context.Context) (path string, _ error) {
	o := Options{Temp: os.TempDir()}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, probeTimeout)
		err = o.run(limited, nil, nil, path, "-I", "-c", probeScript)
		cancel()
		switch {
		case err == nil:
			return path, nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case openfiles.AreExhausted(err):
			return "", err
		}
	}
	return "", ErrNoPython
}

// fetching matches a line in which pip or uv names what it downloads.
var fetching = regexp.MustCompile(`^Downloading (?:\S*/)?([^/\s?#]+)`)

func (o Options) tell(line string) {
	if m := fetching.FindStringSubmatch(line); m != nil {
		o.Progress("fetching " + m[1])
	}
}

// run runs a program with further variables, and calls line, unless it is nil, with each line of its output. An error has its last
// words. If ctx ends, run stops the program and all that it has started, and returns ctx's cause.
func (o Options) run(ctx context.Context, variables []string, line func(string), command ...string) error {
	var words []string
	if line == nil {
		line = func(string) {}
	}
	c, err := child.Start(child.Options{
		Path: command[0], Args: command[1:], Env: slices.Concat(o.environment(), variables), Dir: o.Temp,
		Line: func(text string) {
			words = append(words, strings.TrimSpace(text))
			words = words[max(0, len(words)-lastWords):]
			if o.Progress != nil {
				o.tell(text) // uv tells its progress here
			}
		},
	})
	if err != nil {
		return err
	}
	defer c.Stop()
	_ = c.Stdin.Close() // a program that asks a question gets no answer
	defer context.AfterFunc(ctx, c.Stop)()
	for lines := bufio.NewScanner(c.Stdout); lines.Scan(); {
		line(strings.TrimSpace(lines.Text()))
	}
	<-c.Done()
	switch err := c.Err(); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		return nil
	default:
		said := strings.Join(words, "; ")
		if said == "" {
			said = "it says nothing"
		}
		return fmt.Errorf("%s (%w)", said, err)
	}
}

// environment returns the environment for Python: all variables but those that change which packages Python and pip find.
func (o Options) environment() []string {
	return append(slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "PYTHON") || strings.HasPrefix(name, "PIP_") ||
			name == "VIRTUAL_ENV" || name == "__PYVENV_LAUNCHER__"
	}), "TMPDIR="+o.Temp)
}
