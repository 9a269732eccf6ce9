package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

const (
	partSuffix       = ".part"
	checkpointSuffix = ".part.json"
	// Models are no secrets, but what is below the home folder is its user's own.
	fileMode, folderMode = 0o644, 0o700
)

// part is a file while it is fetched: <name>.part, and <name>.part.json beside it that says which bytes of it are there.
// Everything goes through an os.Root, so that no name and no link leads outside of the models folder.
//
// At a crash, bytes above the last checkpoint are fetched again, bytes below it never: the file gets to the disk before the
// checkpoint that speaks of it.
type part struct {
	root *os.Root
	name string // of the file when it is whole
	want remoteFile
	have *atomic.Int64 // how much is there, for others to read

	saving sync.Mutex // held while a checkpoint is written

	mu       sync.Mutex
	file     *os.File
	done     spans
	taken    spans // being fetched
	etag     string
	anyETag  bool // the server's tags have proved to say nothing
	verified bool
	resumed  bool // some of the bytes are from an earlier time, or from a server that may have changed its mind
	changed  bool // since the last checkpoint
	sum      *digest
}

// checkpoint is what the file beside a part says.
type checkpoint struct {
	remoteFile
	ETag     string    `json:"etag,omitempty"`
	Done     spans     `json:"done"`
	Verified bool      `json:"verified,omitempty"` // the checksum holds, for the file as it was at Changed
	Changed  time.Time `json:"changed,omitzero"`
}

// openPart opens a part, or begins one. What is there of another version is thrown away. have is set to what is there.
func openPart(root *os.Root, name string, want remoteFile, have *atomic.Int64) (*part, error) {
	p := &part{root: root, name: name, want: want, have: have}
	if err := root.MkdirAll(filepath.Dir(name), folderMode); err != nil {
		return nil, folderError(root, filepath.Dir(name), err)
	}
	if info, err := root.Lstat(name + partSuffix); err == nil && !info.Mode().IsRegular() {
		if err := root.Remove(name + partSuffix); err != nil { // a link would lead the bytes elsewhere
			return nil, diskError("clearing away "+name+partSuffix, err)
		}
	}
	c, known := readCheckpoint(root, name, want)
	file, err := root.OpenFile(name+partSuffix, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, diskError("writing "+name+partSuffix, err)
	}
	p.file, p.sum = file, newDigest(want)
	if known {
		p.done, p.etag, p.verified = c.Done, c.ETag, c.Verified
		p.resumed = len(p.done) > 0
		p.have.Store(p.done.bytes())
		p.sum.reach(p.reached())
		return p, nil
	}
	if err := p.reset(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// readCheckpoint reads what is there of a file, if it is of this version and the disk agrees.
func readCheckpoint(root *os.Root, name string, want remoteFile) (checkpoint, bool) {
	info, err := root.Lstat(name + partSuffix)
	if err != nil || !info.Mode().IsRegular() {
		return checkpoint{}, false
	}
	text, err := root.ReadFile(name + checkpointSuffix)
	var c checkpoint
	if err != nil || json.Unmarshal(text, &c) != nil || c.remoteFile != want {
		return checkpoint{}, false
	}
	c.Done = c.Done.within(min(want.Size, info.Size()))
	c.Verified = c.Verified && c.Done.bytes() == want.Size && info.Size() == want.Size && info.ModTime().Equal(c.Changed)
	return c, true
}

// reset throws away what is there.
func (p *part) reset() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.taken, p.etag, p.verified, p.resumed, p.changed = nil, nil, "", false, false, true
	close(p.sum.ended)
	p.sum = newDigest(p.want)
	p.have.Store(0)
	if err := p.file.Truncate(0); err != nil {
		return diskError("emptying "+p.name+partSuffix, err)
	}
	return nil
}

// take gives a span of at most so many bytes that nobody fetches yet; an empty one if there is none.
func (p *part) take(most int64) span {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append(spans(nil), p.done...)
	for _, t := range p.taken {
		all = all.add(t)
	}
	s := all.gap(p.want.Size)
	s.To = min(s.To, s.From+most)
	if s.From < s.To {
		p.taken = append(p.taken, s)
	}
	return s
}

// giveBack ends what take began, however much of it was fetched.
func (p *part) giveBack(s span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = p.taken.remove(s)
}

// write puts bytes at their place.
func (p *part) write(b []byte, at int64) error {
	if _, err := p.file.WriteAt(b, at); err != nil {
		return diskError("writing "+p.name+partSuffix, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = p.done.add(span{at, at + int64(len(b))})
	p.changed = true
	p.have.Store(p.done.bytes())
	p.sum.reach(p.reached())
	return nil
}

// reached is how far the file is there without a gap. p.mu is held.
func (p *part) reached() int64 {
	if len(p.done) == 0 || p.done[0].From > 0 {
		return 0
	}
	return p.done[0].To
}

// isWhole tells whether all bytes are there.
func (p *part) isWhole() bool { return p.have.Load() == p.want.Size }

// tag is the server's word for the version that is being fetched; empty where none is known, or none helps.
func (p *part) tag() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.anyETag {
		return ""
	}
	return p.etag
}

// learn takes the tag of an answer, and tells whether it is that of the bytes so far.
func (p *part) learn(tag string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.anyETag || tag == "":
		return true
	case p.etag == "":
		p.etag, p.changed = tag, true
		return true
	default:
		return strings.TrimPrefix(p.etag, "W/") == strings.TrimPrefix(tag, "W/")
	}
}

// ignoreTags is for a server that changes its tags while the hub's list stays: the checksum decides alone.
func (p *part) ignoreTags() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.anyETag, p.etag, p.changed, p.resumed = true, "", true, true
}

// follow computes the checksum of what comes, until the context ends.
func (p *part) follow(ctx context.Context) {
	for ctx.Err() == nil {
		p.mu.Lock()
		sum := p.sum
		p.mu.Unlock()
		sum.follow(ctx, p.file)
	}
}

// verify finishes the checksum of a part that is whole. One that doesn't hold is thrown away, and the error is a *fault.
func (p *part) verify(ctx context.Context) error {
	if p.verified {
		return nil
	}
	got, ok, err := p.sum.holds(ctx, p.file, p.want.Size)
	if err != nil {
		return err
	}
	if !ok {
		resumed := p.resumed
		if err := p.reset(); err != nil {
			return err
		}
		p.resumed = resumed // what led here, for who decides on another try
		return moved(otherSum, "%s has the checksum %s, but the hub says %s: it was damaged on the way, or the hub is wrong. Nothing of it was kept.", p.want.Path, got, p.sum.want)
	}
	p.mu.Lock()
	p.verified, p.changed = true, true
	p.mu.Unlock()
	return nil
}

// save writes a checkpoint, if there is anything new to say.
func (p *part) save() error {
	p.saving.Lock()
	defer p.saving.Unlock()
	p.mu.Lock()
	c := checkpoint{remoteFile: p.want, ETag: p.etag, Done: append(spans(nil), p.done...), Verified: p.verified}
	changed := p.changed
	p.changed = false
	p.mu.Unlock()
	if !changed {
		return nil
	}
	if err := p.file.Sync(); err != nil {
		return diskError("writing "+p.name+partSuffix, err)
	}
	if c.Verified {
		info, err := p.file.Stat()
		if err != nil {
			return diskError("looking at "+p.name+partSuffix, err)
		}
		c.Changed = info.ModTime()
	}
	write := func(w io.Writer) error { return json.NewEncoder(w).Encode(c) }
	if err := atomicfile.Write(p.root, p.name+checkpointSuffix, 0o600, write); err != nil {
		return diskError("writing the checkpoint of "+p.name, err)
	}
	return nil
}

// close ends the work on the part and leaves it for later.
func (p *part) close() error {
	err := p.save()
	return errors.Join(err, p.file.Close())
}

// place makes a verified part the file that it is for. The part is closed.
func installFile(root *os.Root, name string) error {
	if err := root.Rename(name+partSuffix, name); err != nil {
		return diskError("renaming "+name+partSuffix, err)
	}
	_ = root.Remove(name + checkpointSuffix) // without its part it means nothing
	return nil
}

// removePart deletes what is there of a file that isn't whole.
func removePart(root *os.Root, name string) error {
	var errs error
	for _, suffix := range []string{partSuffix, checkpointSuffix} {
		if err := root.Remove(name + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// isThere tells whether a file is in its place already, as far as its size says. Unlike what is written, it may be linked to
// from there: users do that.
func (s *Jobs) isThere(f file) bool {
	info, err := os.Stat(filepath.Join(s.models, f.name()))
	return err == nil && info.Mode().IsRegular() && info.Size() == f.Size
}

// diskError is about this machine's disk. One that is full is told apart.
func diskError(doing string, err error) error {
	if isDiskFull(err) {
		return fatal(NoSpace, "The disk is full (%s). Free some space, and resume the download: what was fetched is kept.", doing)
	}
	return fatal(Internal, "%s: %w. Check the models folder and its rights, and resume the download.", doing, err)
}

// folderError is about a model's folder that can't be made, or lies elsewhere.
func folderError(root *os.Root, dir string, err error) error {
	for ; dir != "." && !isDiskFull(err); dir = filepath.Dir(dir) {
		if info, lstat := root.Lstat(dir); lstat == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fatal(Internal, "%s in the models folder is a link that leads outside of it, and nothing is written through one. Put a folder in its place, and resume the download.", dir)
		}
	}
	return diskError("making the model's folder", err)
}
