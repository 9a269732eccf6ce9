// Package backup writes a home folder's state to one file, and restores it.
//
// The file is a tar archive, compressed by zstd:
//
//	lmcaddy-backup.json   the Header, always first
//	home/...              the files, with their paths in the home folder
//	checksums.json        the Sums of all files, always last: an archive without them is cut off
//
// Restoring extracts and checks everything in a hidden folder of the home, then writes a plan, and then does what the plan says: each
// step is a rename or a deletion that can be repeated. Whatever happens before the plan is written, the home is as it was. After
// that, [Finish] completes it, at the latest when the home is locked the next time.
package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

// Format is the version of the archive's format that this program writes, and the newest that it reads.
const Format = 1

// The names of the entries other than those of the home.
const (
	headerName = "lmcaddy-backup.json"
	sumsName   = "checksums.json"
	homePrefix = "home/"
)

// Header describes an archive.
type Header struct {
	Format  int       `json:"format"`
	Version string    `json:"lmcaddy"` // the program that wrote it
	Created time.Time `json:"created"`
	// Schema is the version of the database's schema; 0 if the archive has no database, because the home has none or because
	// conversations and tokens are in PostgreSQL.
	Schema int  `json:"schema"`
	Models bool `json:"models"` // whether it has the models
}

// Sum is what a file in the archive has to be like.
type Sum struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// sums is the content of the last entry.
type sums struct {
	Files []Sum `json:"files"`
}

// WorkPrefix begins the names of folders in run/ in which backups have copies of the database.
const WorkPrefix = "backup-"

// database is the name of the SQLite file in a home.
const database = "lmcaddy.db"

// replaced are the files and folders that a restored home has from the archive, or not at all.
var replaced = []string{database, "mcp.json", "names.json", "caddy", "Caddyfile", "environment"}

// derived are those that belong to the replaced database, and must not outlive it.
var derived = []string{database + "-wal", database + "-shm", database + "-journal", "warm"}

// selections are the files in runtimes/ that name the selected engines.
const selections = "runtimes/selected"

// others are what else lmcaddy keeps in a home, and no archive has.
var others = []string{"models", "runtimes", "downloads", "run", "cache", "catalog.json", staging}

// IsOwn reports whether a path in a home is for lmcaddy's own files, or below one of its folders: no other file may be there.
func IsOwn(name string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(name), "/")
	return slices.ContainsFunc(slices.Concat(replaced, derived, others), func(own string) bool { return strings.EqualFold(own, first) })
}

// notKept are the files below caddy/ that mean nothing in another process.
var notKept = []string{"caddy/locks", "caddy/last_clean.json", "caddy/instance.uuid"}

// mayContain returns an error unless a path may be in an archive.
func mayContain(name string) error {
	first, _, isBelow := strings.Cut(name, "/")
	isTrouble := func(r rune) bool { return r < ' ' || r == '\\' || r == ':' || r == 0x7f } // to a system, or to a terminal
	isPath := fs.ValidPath(name) && filepath.IsLocal(filepath.FromSlash(name)) && !strings.ContainsFunc(name, isTrouble)
	switch {
	case !isPath:
	case slices.Contains(replaced, first) && (first == "caddy") == isBelow:
		return nil
	case strings.HasPrefix(name, selections) && strings.Count(name, "/") == 1:
		return nil
	case first == "models" && isBelow:
		return nil
	}
	return fmt.Errorf("it has a file %q, which no backup has", name)
}

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
