package home

import (
	"os"
	"path/filepath"
	"strings"
)

// MaxSocketPath is the longest path, in bytes, that a Unix socket may have on every system.
const MaxSocketPath = 103

// Absolute returns a path that stays right if the working directory changes. A ~ is expanded as by [Expand].
func Absolute(path string) string {
	if abs, err := filepath.Abs(Expand(path)); err == nil {
		return abs
	}
	return path
}

// Expand replaces a ~ at the beginning of a path with the user's folder, as a shell does.
func Expand(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok || rest != "" && !os.IsPathSeparator(rest[0]) {
		return path
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(user, rest)
}

// Real makes the folder, and returns its path without symbolic links: two names of one folder are one home.
func (d Dir) Real() (Dir, error) {
	if err := d.Make(); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(string(d))
	return Dir(real), err
}
