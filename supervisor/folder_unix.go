//go:build unix

package supervisor

import (
	"os"
	"syscall"
)

// isPrivate reports whether path is a folder, not a link to one, that this user owns and nobody else may enter.
func isPrivate(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
