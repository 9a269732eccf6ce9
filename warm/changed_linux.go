package warm

import (
	"io/fs"
	"syscall"
)

// changedAt returns when a file was last changed, by the clock of the system: other than the time of modification, nobody can set it.
func changedAt(info fs.FileInfo) (seconds, nanoseconds int64) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return stat.Ctim.Unix()
}
