package caddymodule

import (
	"os"
	"path/filepath"
	"strings"
)

// absolute is a path that stays right whatever the working directory becomes.
func absolute(path string) string {
	if abs, err := filepath.Abs(atUser(path)); err == nil {
		return abs
	}
	return path
}

// atUser is a path with the user's folder in place of a ~ at its beginning, which elsewhere is the shell's to replace.
func atUser(path string) string {
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
