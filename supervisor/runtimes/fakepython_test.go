package runtimes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePython is a Python as far as package venv needs one, since the real pip takes seconds of CPU time. Its environments are a script.
type fakePython struct {
	// install is run by `pip install`, with the requirement as $requirement and an empty folder of the environment as $packages.
	install string
	// start is run by `-m mlx_lm --version`, with the same folder.
	start string
}

// put makes it the first Python on PATH, up to the end of the test. It returns a file with the requirements that were installed.
func (p fakePython) put(t *testing.T) (installed string) {
	t.Helper()
	folder := t.TempDir()
	installed = filepath.Join(folder, "installed")
	script := strings.NewReplacer("INSTALLED", installed, "INSTALL", p.install, "START", p.start).Replace(`#!/bin/sh
for requirement; do :; done
packages=${0%/*}/../packages
case "$*" in
*ensurepip*) ;;
*sys.version_info*) echo 3.12;;
*"-m venv"*) mkdir -p "$requirement/bin" "$requirement/packages" && cp "$0" "$requirement/bin/python3";;
*"config list") ;;
*" install "*)
	echo "Collecting $requirement"
	echo "$requirement" >>'INSTALLED'
	INSTALL;;
"-I -m mlx_lm --version")
	START;;
*)
	echo "not expected: $*" >&2
	exit 1;;
esac
`)
	must(t, os.WriteFile(filepath.Join(folder, "python3.13"), []byte(script), 0o700))
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	return installed
}
