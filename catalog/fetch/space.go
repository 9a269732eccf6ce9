package fetch

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

// spareBytes is the space to leave free on the disk.
const spareBytes = 64 << 20

// modelsDisk is the models folder.
type modelsDisk struct {
	models string // its absolute path
	root   *os.Root
}

// dir returns the absolute path of a job's folder.
func (d *modelsDisk) dir(folder string) string {
	return filepath.Join(d.models, filepath.FromSlash(folder))
}

// isThere reports whether a file of the right size exists. Unlike the files that are written, it may be a link that leads out
// of the folder, since users link models.
func (d *modelsDisk) isThere(f file) bool {
	info, err := os.Stat(filepath.Join(d.models, f.name()))
	return err == nil && info.Mode().IsRegular() && info.Size() == f.Size
}

func (d *modelsDisk) areThere(files []file) bool {
	return !slices.ContainsFunc(files, func(f file) bool { return !d.isThere(f) })
}

// haveOf returns how many bytes of a file are there.
func (d *modelsDisk) haveOf(f file, state State) int64 {
	if state == Completed || !f.Replace && d.isThere(f) {
		return f.Size
	}
	if c, ok := readCheckpoint(d.root, f.name(), f.RemoteFile); ok {
		return c.Done.bytes()
	}
	return 0
}

// room is the space that a job needs on the disk.
type room struct {
	need   int64 // bytes that are left to fetch
	others int64 // bytes that other downloads have left
	free   int64 // bytes; 0 if unknown
	known  bool  // free is
}

func (r room) isEnough() bool { return !r.known || r.need == 0 || r.need+r.others+spareBytes <= r.free }

func (s *Jobs) roomFor(j *job) room {
	free, err := s.options.Free(s.models)
	if err != nil {
		s.log.Warn("how much of the disk is free isn't known", "folder", s.models, "error", err)
		return room{need: j.left()} // writing will show
	}
	s.mu.Lock()
	all := s.sorted()
	s.mu.Unlock()
	r := room{need: j.left(), free: free, known: true}
	for _, o := range all {
		if o != j && o.snapshot().State == Downloading {
			r.others += o.left()
		}
	}
	return r
}

// checkSpace checks that the disk has room for the rest of a job and of all other downloads.
func (s *Jobs) checkSpace(j *job) error {
	r := s.roomFor(j)
	if r.isEnough() {
		return nil
	}
	beside := ""
	if r.others > 0 {
		beside = ", beside " + hub.FormatSize(r.others) + " of other downloads"
	}
	return hub.Errorf(hub.NoSpace, "The disk has too little room: %s are to be fetched%s, and %s are free, of which %s have to stay free. "+
		"Free some space, or put the models folder on another disk.", hub.FormatSize(r.need), beside,
		hub.FormatSize(r.free), hub.FormatSize(spareBytes))
}
