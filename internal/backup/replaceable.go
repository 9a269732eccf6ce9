package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shirou/gopsutil/v3/disk"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

// checkReplaceable returns an error if a restore couldn't remove what it replaces, in which case it would stop halfway: another user's
// folders, as after a start by root, or what is mounted, as in a container.
func checkReplaceable(dir home.Dir) error {
	var mounts []string
	if partitions, err := disk.Partitions(true); err == nil {
		for _, p := range partitions {
			mounts = append(mounts, p.Mountpoint)
		}
	}
	real, err := filepath.EvalSymlinks(string(dir))
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(derived, replaced) {
		at := filepath.Join(real, name)
		for _, mount := range mounts {
			if mount == at || strings.HasPrefix(mount, at+string(filepath.Separator)) {
				return fmt.Errorf("%s is mounted, so a restore can't replace it: unmount it first. Nothing was changed", mount)
			}
		}
		if err := checkRemovable(at); err != nil {
			return err
		}
	}
	return nil
}

// checkRemovable returns an error if this user may not empty a folder, or one below it.
func checkRemovable(folder string) error {
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && !e.IsDir():
			return nil
		case err == nil && mayEmpty(path):
			return nil
		case err == nil || errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("a restore would replace %s, and this user may not change what is in it: "+
				"see to whom it belongs (chown gives it to this user). Nothing was changed", path)
		default:
			return err
		}
	})
}
