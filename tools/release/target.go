package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// target is a platform that the program is built for, in Go's words.
type target struct{ os, arch string }

var allTargets = []target{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func (t target) String() string { return t.os + "/" + t.arch }

func (t target) program() string {
	if t.os == "windows" {
		return "lmcaddy.exe"
	}
	return "lmcaddy"
}

// parseTargets parses a list such as linux/amd64,darwin/arm64. An empty one stands for all.
func parseTargets(list string) ([]target, error) {
	if list == "" {
		return allTargets, nil
	}
	var targets []target
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(allTargets, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no target %q; the targets are %v", name, allTargets)
		}
		targets = append(targets, allTargets[i])
	}
	return targets, nil
}

// Tags and linker flags are those of the Makefile; TestBuild_IsTheSameEverywhere compares them.
const (
	buildTags    = "nobadger,nomysql,nopgx"
	versionField = "github.com/caddyserver/caddy/v2.CustomVersion"
)

// build builds the program, unless it is there, and returns its path. Nothing of the machine, the folder or the environment
// gets into it.
func (r *release) build(ctx context.Context, t target) (string, error) {
	to := filepath.Join(r.work, t.os+"-"+t.arch, t.program())
	if _, err := os.Stat(to); err == nil {
		return to, nil
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-tags", buildTags,
		"-ldflags", "-s -w -X "+versionField+"="+string(r.version), "-o", to, "./cmd/lmcaddy")
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GODEBUG=", "GOWORK=off", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return to, nil
}

func (r *release) archiveFolder(t target) string {
	return fmt.Sprintf("lmcaddy_%s_%s_%s", r.version.number(), t.os, t.arch)
}

// archiveName is the name of a target's archive: what its users can open without installing anything.
func (r *release) archiveName(t target) string {
	if t.os == "windows" {
		return r.archiveFolder(t) + ".zip"
	}
	return r.archiveFolder(t) + ".tar.gz"
}

// noticesOf returns the file of a program's notices, which is beside it.
func noticesOf(binary string) string { return filepath.Join(filepath.Dir(binary), noticesName) }

// filesFor returns the files of a target's archive.
func (r *release) filesFor(t target, binary string) []packed {
	files := []packed{
		{name: t.program(), from: binary, isProgram: true},
		{name: "LICENSE", from: filepath.Join(r.source, "LICENSE")},
		{name: "README.md", from: filepath.Join(r.source, "README.md")},
		{name: noticesName, from: noticesOf(binary)},
	}
	for _, completion := range completions {
		if (t.os == "windows") == (completion.shell == "powershell") {
			files = append(files, packed{name: "completions/" + completion.file, from: filepath.Join(r.completionsDir(), completion.file)})
		}
	}
	if t.os == "windows" {
		return files
	}
	for _, page := range r.pages() {
		files = append(files, packed{name: "man/" + filepath.Base(page), from: page})
	}
	return files
}
