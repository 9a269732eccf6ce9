//go:build unix

package doctor

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

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
