//go:build unix

package doctor

import (
	"io/fs"
	"os"
	"syscall"
)

// hasModes says that the mode of a file tells who may read it.
const hasModes = true

func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid() || os.Geteuid() == 0
}
