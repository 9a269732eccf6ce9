package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// part is a module that a program contains, or Go's standard library.
type part struct {
	path, version string
	sum           string // that of go.sum; empty for the standard library
	licenses      []license
}

// license is a file with a license, or with what a license wants to be passed on.
type license struct {
	file string
	text []byte
}

// standardLibrary is the path of Go's standard library, as scanners of vulnerabilities name it.
const standardLibrary = "std"

// partsOf returns what a program contains, as the linker has recorded it there, with the licenses of the module cache that it
// was built from.
func (r *release) partsOf(ctx context.Context, info *buildinfo.BuildInfo) ([]part, error) {
	folders, err := r.modules(ctx)
	if err != nil {
		return nil, err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	folders[standardLibrary] = strings.TrimSpace(string(root))
	parts := []part{{path: standardLibrary, version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, part{path: m.Path, version: m.Version, sum: m.Sum})
	}
	for i, p := range parts {
		if parts[i].licenses, err = licensesIn(folders[p.path]); err != nil {
			return nil, fmt.Errorf("looking for the license of %s: %w", p.path, err)
		}
	}
	return parts, nil
}

// modules returns the folder of each module in the module cache.
func (r *release) modules(ctx context.Context) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m all: %w", err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, folder, _ := strings.Cut(strings.TrimSpace(line), "\t")
		folders[path] = folder
	}
	return folders, nil
}

// licenseFile matches the names of files that are passed on.
var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([-_.].*)?$`)

// licensesIn returns the licenses of one module. One without any is an error: nobody may distribute it.
func licensesIn(folder string) ([]license, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var found []license
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, license{e.Name(), bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("there is none in %s", folder)
	}
	return found, nil
}

// licenseIDs returns the SPDX identifiers of the licenses whose texts a module has, in alphabetical order. Other files than
// licenses, such as a grant of patents, have no identifiers.
func (p part) licenseIDs() []string {
	var ids []string
	for _, l := range p.licenses {
		if name := strings.ToLower(l.file); strings.HasPrefix(name, "notice") || strings.HasPrefix(name, "patents") {
			continue
		}
		for _, m := range licensecheck.Scan(l.text).Match {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
