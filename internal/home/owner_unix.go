//go:build unix

package home

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// OtherThanRoot returns the name of the user to whom the folder belongs, as sudo takes it, if this user is root and that one isn't:
// that user can read nothing of what root writes there. It is empty otherwise.
func (d Dir) OtherThanRoot() string {
	info, err := os.Stat(string(d))
	if err != nil || os.Geteuid() != 0 {
		return ""
	}
	return otherOwner(info)
}

// otherOwner returns the name of the user to whom a file belongs, as sudo takes it, or nothing if that is this user.
func otherOwner(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return ""
	}
	id := strconv.FormatUint(uint64(stat.Uid), 10)
	if owner, err := user.LookupId(id); err == nil {
		return owner.Username
	}
	return "#" + id
}
