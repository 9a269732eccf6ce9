//go:build unix

package doctor

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasModes says that the mode of a file tells who may read it.
const hasModes = true

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid() || os.Geteuid() == 0
}

// groupOf returns the name of a file's group, if its members may use the file; empty otherwise.
func groupOf(path string) string {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o060 != 0o060 {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Gid == 0 {
		return ""
	}
	group, err := user.LookupGroupId(strconv.Itoa(int(stat.Gid)))
	if err != nil {
		return ""
	}
	return group.Name
}

// unlimited is less than what any system calls infinite, and more than any limit.
const unlimited = 1 << 60

// limits returns the most files that a process may open, and the most memory that it may take; 0: unlimited. The server
// raises its own limit of files to the highest allowed.
func limits() (files, memory uint64) {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && l.Max < unlimited {
		files = l.Max
	}
	if unix.Getrlimit(unix.RLIMIT_AS, &l) == nil && l.Cur < unlimited {
		memory = l.Cur
	}
	return files, memory
}
