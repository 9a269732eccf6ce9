// Package venv makes virtual environments of Python with a package in them.
//
// It uses uv if that is on PATH, or else the modules venv and ensurepip of a Python there, with pip. Neither packages of the system or the
// user get into an environment nor what pip is configured to do, except for where packages come from. Nothing of a package is run, since
// only wheels are installed. An environment works in another folder, too: its interpreter is a symbolic link, and the scripts, which name
// their folder, are removed.
//
// The processes are ended with the context, and with this process. No goroutine outlives a call.
package venv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// interpreter is an environment's Python, relative to its folder.
const interpreter = "bin/python3"

// Options says what Make makes.
type Options struct {
	// Folder is where the environment will be. It must not exist, or be empty.
	Folder string
	// Temp is an existing folder for temporary files.
	Temp string
	// Requirement is the package to install, such as "mlx-lm[cpu]==0.31.3".
	Requirement string
	// Index is the URL of a package index to use instead of all others; empty: those that uv or pip is configured to use, or else PyPI.
	Index string
	// Progress is called by one goroutine at a time with what is being done.
	Progress func(doing string)
}

// Made is an environment.
type Made struct {
	Interpreter string // relative to the folder
	Python      string // its version, such as "3.12"
	Source      string // where the packages are from: a host
}

// Make makes an environment. On an error, the content of the folder is undefined. If ctx ends, the error is its cause; if there is
// neither uv nor a suitable Python, it is [ErrNoPython].
func Make(ctx context.Context, o Options) (Made, error) {
	install := o.withPip
	if uv, err := exec.LookPath("uv"); err == nil {
		install = func(ctx context.Context) (string, error) { return o.withUV(ctx, uv) }
	}
	o.Progress("making a virtual environment")
	index, err := install(ctx)
	if err != nil {
		return Made{}, err
	}
	bin := filepath.Join(o.Folder, "bin")
	entries, err := os.ReadDir(bin)
	for _, entry := range entries { // scripts begin with the path of their interpreter
		if !strings.HasPrefix(entry.Name(), "python") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(bin, entry.Name())))
		}
	}
	if err != nil {
		return Made{}, fmt.Errorf("the virtual environment: %w", err)
	}
	var version string
	err = o.run(ctx, nil, func(line string) { version = line },
		filepath.Join(o.Folder, interpreter), "-I", "-c", "import sys; print(*sys.version_info[:2], sep='.')")
	if err != nil {
		return Made{}, err
	}
	flush()
	source := "PyPI"
	if at, err := url.Parse(index); err == nil && at.Host != "" {
		source = at.Host
	}
	return Made{Interpreter: interpreter, Python: version, Source: source}, nil
}

// withUV makes the environment with uv, which finds a Python, or downloads one. It returns the package index.
func (o Options) withUV(ctx context.Context, uv string) (index string, _ error) {
	index = o.Index
	var environment []string
	if index != "" {
		environment = []string{"UV_DEFAULT_INDEX=" + index, "UV_INDEX=", "UV_FIND_LINKS="}
	} else {
		index = os.Getenv("UV_DEFAULT_INDEX")
	}
	versions := fmt.Sprintf(">=3.%d,<3.%d", oldest, newest+1)
	if err := o.run(ctx, environment, nil, uv, "venv", "--no-project", "--python", versions, o.Folder); err != nil {
		return "", fmt.Errorf("uv venv: %w", err)
	}
	err := o.run(ctx, environment, nil,
		uv, "pip", "install", "--python", filepath.Join(o.Folder, interpreter), "--only-binary", ":all:", o.Requirement)
	if err != nil {
		return "", fmt.Errorf("uv pip install %s: %w", o.Requirement, err)
	}
	return index, nil
}

// withPip makes the environment with a Python of the machine, and the pip that comes with it. It returns the package index.
func (o Options) withPip(ctx context.Context) (index string, _ error) {
	python, err := Find(ctx)
	if err != nil {
		return "", err
	}
	if err := o.run(ctx, nil, nil, python, "-I", "-m", "venv", o.Folder); err != nil {
		return "", fmt.Errorf("%s -m venv: %w", python, err)
	}
	return o.pipInstall(ctx)
}

// sources are pip's settings about where packages come from. Of its configuration, only they are used: others may put packages elsewhere.
const sources = "index-url|extra-index-url|find-links|no-index|trusted-host|cert|client-cert|keyring-provider|proxy|" +
	"timeout|default-timeout|retries"

// configured matches such a setting in the output of `pip config list`, which has values as literals of Python.
var configured = regexp.MustCompile(`^(?:global|install)\.(` + sources + `)=['"](.*)['"]$`)

// pipInstall installs the package and all that it requires. It returns the package index.
func (o Options) pipInstall(ctx context.Context) (index string, _ error) {
	pip := []string{filepath.Join(o.Folder, interpreter), "-I", "-u", "-m", "pip"}
	var environment []string
	set := func(name, value string) {
		name = "PIP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		environment = append(environment, name+"="+value)
		if name == "PIP_INDEX_URL" {
			index = value
		}
	}
	if err := o.run(ctx, nil, func(line string) {
		if m := configured.FindStringSubmatch(line); m != nil {
			set(m[1], strings.ReplaceAll(m[2], `\n`, " "))
		}
	}, append(pip, "config", "list")...); err != nil {
		return "", fmt.Errorf("pip config list: %w", err)
	}
	for name := range strings.SplitSeq(sources, "|") {
		value, isSet := os.LookupEnv("PIP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
		if isSet {
			set(name, value)
		}
	}
	if o.Index != "" { // in a variable, since arguments are visible to other users, and it may have a password
		for _, name := range []string{"extra-index-url", "find-links", "no-index"} {
			set(name, "")
		}
		set("index-url", o.Index)
	}
	set("config-file", os.DevNull)
	install := append(pip, "install", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-color",
		"--no-warn-script-location", "--progress-bar", "off", "--only-binary", ":all:", o.Requirement)
	if err := o.run(ctx, environment, o.tell, install...); err != nil {
		return "", fmt.Errorf("pip install %s: %w", o.Requirement, err)
	}
	return index, nil
}

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
