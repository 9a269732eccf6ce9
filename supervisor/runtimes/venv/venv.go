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
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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
