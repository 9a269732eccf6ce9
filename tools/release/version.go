package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// version is what `git describe --tags --always --dirty` prints, such as v0.3.0, v0.3.0-rc.1-12-g5150f47 or 5150f47.
type version string

// describe returns the version of a checkout. It says so if the checkout isn't that of the commit: unlike git's own word for it,
// it counts files that aren't in git as well, since Go builds them, too.
func describe(ctx context.Context, source string) (version, error) {
	ask := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", source}, args...)...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w; outside of a checkout, give -version", args[0], err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	described, err := ask("describe", "--tags", "--always")
	if err != nil {
		return "", err
	}
	changes, err := ask("status", "--porcelain")
	if err != nil {
		return "", err
	}
	if changes != "" {
		described += "-dirty"
	}
	return version(described), nil
}

// since parses what git describe appends after a tag: the number of commits, and the last one.
var since = regexp.MustCompile(`^(.*?)(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)

// number returns the version without the v. A commit before the first tag is a version before all others.
func (v version) number() string {
	n, ok := strings.CutPrefix(string(v), "v")
	if !ok || n == "" || n[0] < '0' || n[0] > '9' {
		return "0.0.0-git." + string(v)
	}
	return n
}

// forPackages returns the version in the order of packages: ~ sorts before what it is appended to, and + after it. It is the
// same for .deb and .rpm.
func (v version) forPackages() string {
	parts := since.FindStringSubmatch(v.number())
	base, commits, commit, dirty := parts[1], parts[2], parts[3], parts[4]
	base = strings.ReplaceAll(strings.Replace(base, "-", "~", 1), "-", ".")
	if commits != "" {
		base += "+" + commits + ".g" + commit
	}
	if dirty != "" {
		base += "+dirty"
	}
	return base
}
