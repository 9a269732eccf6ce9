// Package venv makes virtual environments of Python with a package in them.
//
// It uses a Python of the machine, with the modules venv and ensurepip of its standard library, and the pip that comes with it,
// which isn't part of the environment. Neither packages of the system or the user nor pip's configuration get into an environment;
// only the settings about where packages come from are taken from pip's configuration. Nothing of a package is run, since only
// wheels are installed. An environment works in another folder, too: its interpreter is a symbolic link, and the scripts, which
// name their folder, are removed.
//
// The processes are ended with the context, and with this process. No goroutine outlives a call.
package venv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// interpreter is an environment's Python, relative to its folder.
const interpreter = "bin/python3"

// Options says what Make makes.
type Options struct {
	// Folder is where the environment will be. It must not exist, or be empty.
	Folder string
	// Temp is an existing folder for pip and its temporary files.
	Temp string
	// Requirement is the package to install, such as "mlx-lm[cpu]==0.31.3".
	Requirement string
	// Index is the URL of a package index to use instead of all others; empty: those that pip is configured to use, or else PyPI.
	Index string
	// Progress is called by one goroutine at a time. Done and total are bytes, 0 if unknown. It may be nil.
	Progress func(doing string, done, total int64)
}

// Made is an environment.
type Made struct {
	Interpreter string // relative to the folder
	Source      string // where the packages are from: a host, or "" if it isn't known
}

// Make makes an environment. On an error, the content of the folder is undefined. If ctx ends, the error is its cause.
func (p Python) Make(ctx context.Context, o Options) (Made, error) {
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	environment := cleanEnvironment(os.Environ(), o.Temp)
	o.Progress("making a virtual environment", 0, 0)
	if words, err := run(ctx, environment, nil, p.Path, "-I", "-m", "venv", "--without-pip", o.Folder); err != nil {
		return Made{}, fmt.Errorf("%s -m venv: %w", p.Path, failure(err, words))
	}
	pip, settings, err := p.pip(ctx, o, environment)
	if err != nil {
		return Made{}, err
	}
	if err := pip.install(ctx, o, settings); err != nil {
		return Made{}, err
	}
	if err := removeScripts(filepath.Join(o.Folder, "bin")); err != nil {
		return Made{}, err
	}
	flush()
	return Made{Interpreter: interpreter, Source: settings.source()}, nil
}

// removeScripts removes all but the interpreter from an environment's bin folder: scripts begin with the path of their interpreter.
func removeScripts(bin string) error {
	entries, err := os.ReadDir(bin)
	if err != nil {
		return fmt.Errorf("the virtual environment: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "python") {
			continue
		}
		if err := os.RemoveAll(filepath.Join(bin, entry.Name())); err != nil {
			return fmt.Errorf("the virtual environment: %w", err)
		}
	}
	return nil
}

// cleanEnvironment returns the environment for Python: all variables but those that change which packages Python and pip find.
func cleanEnvironment(all []string, temp string) []string {
	clean := []string{"TMPDIR=" + temp}
	for _, variable := range all {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasPrefix(name, "PYTHON"), strings.HasPrefix(name, "PIP_"):
		case name == "VIRTUAL_ENV", name == "__PYVENV_LAUNCHER__", name == "TMPDIR":
		default:
			clean = append(clean, variable)
		}
	}
	return clean
}
