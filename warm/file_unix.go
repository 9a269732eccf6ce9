//go:build unix

package warm

import (
	"io/fs"
	"os"
	"syscall"
)

// plainly makes opening a symbolic link an error, and doesn't wait for the other end of a pipe.
const plainly = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// isOurs reports whether a file belongs to the user that this process runs as.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}

// syncFolder makes the names in a folder last, and the absence of those that were removed.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	return folder.Sync()
}
