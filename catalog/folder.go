package catalog

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/mlx"
)

// A folder is not read again while its modification time stays the same, except now and then, since some file systems don't
// maintain that time. A folder that is slow to read is read less often. A folder that was modified shortly before it was read
// is read again, because the clocks of file systems are coarse.
const (
	unreadFor   = 10 * time.Second
	unreadRatio = 100
	coarse      = 2 * time.Second
	readAtOnce  = 4096 // entries
)

// limits bound the work of a scan in each root.
type limits struct {
	folders int
	files   int // that may be models
	entries int // of one folder, that are relevant
}

var defaultLimits = limits{folders: 200_000, files: 100_000, entries: 200_000}

// entry is a relevant entry of a folder.
type entry struct {
	name string
	kind fs.FileMode // its type
}

// folderList is the content of a folder when it was read.
type folderList struct {
	modified, read time.Time
	took           time.Duration
	entries        []entry // sorted by name
	cut            bool    // there were more than the limit
}

func (f folderList) holds(name string) bool {
	_, ok := f.find(name)
	return ok
}

func (f folderList) holdsFolder(name string) bool {
	e, ok := f.find(name)
	return ok && (e.kind.IsDir() || e.kind&fs.ModeSymlink != 0)
}

func (f folderList) find(name string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(f.entries, name, func(e entry, name string) int { return cmp.Compare(e.name, name) })
	if !ok {
		return entry{}, false
	}
	return f.entries[i], true
}

// list returns the content of a folder. It reads the folder only if it may have changed.
func (w *walk) list(dir string) (folderList, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return folderList{}, err
	}
	now := time.Now()
	known, ok := w.catalog.folders[dir]
	if !ok || !known.modified.Equal(info.ModTime()) || known.read.Sub(known.modified) < coarse ||
		now.Sub(known.read) > max(unreadFor, unreadRatio*known.took) {
		known = folderList{modified: info.ModTime(), read: now}
		known.entries, known.cut, err = w.readFolder(dir)
		if err != nil {
			return folderList{}, err
		}
		known.took = time.Since(now)
	}
	w.folders[dir] = known
	return known, nil
}

// readFolder reads the relevant entries of a folder. It reads in batches, since there may be millions of entries.
func (w *walk) readFolder(dir string) (entries []entry, cut bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for {
		if err := w.ctx.Err(); err != nil {
			return nil, false, err
		}
		some, err := f.ReadDir(readAtOnce)
		for _, e := range some {
			if !w.matters(e.Name(), e.Type()) {
				continue
			}
			if len(entries) == w.catalog.limits.entries {
				cut = true
				break
			}
			entries = append(entries, entry{e.Name(), e.Type()})
		}
		if cut || errors.Is(err, io.EOF) || err == nil && len(some) == 0 {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return entries, cut, nil
}

// matters reports whether an entry may be a model, contain one or describe one.
func (w *walk) matters(name string, kind fs.FileMode) bool {
	switch {
	case strings.HasPrefix(name, "."):
		return false
	case kind.IsDir(), kind&fs.ModeSymlink != 0:
		return true
	case !kind.IsRegular():
		return false
	default:
		_, isModel := w.config.filesOf(name)
		return isModel || isCacheNote(name) || mlx.IsFile(name)
	}
}
