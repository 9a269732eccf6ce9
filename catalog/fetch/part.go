package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

const (
	// Models aren't secret, but the folders below the home are private.
	fileMode, folderMode = 0o644, 0o700
)

// part is a file that is being downloaded: <name>.part, with <name>.part.json saying which bytes have been downloaded. All
// access goes through an os.Root, so neither names nor links lead out of the models folder.
//
// After a crash, only bytes that came after the last checkpoint are downloaded again: the data is flushed to disk before the
// checkpoint that covers it.
type part struct {
	root *os.Root
	name string // of the complete file
	want hub.RemoteFile
	have *atomic.Int64 // bytes downloaded, for other goroutines

	saving sync.Mutex // held while a checkpoint is written

	mu       sync.Mutex
	file     *os.File
	done     spans
	taken    spans // being downloaded
	etag     string
	anyETag  bool // the server's ETags change although its list doesn't: the checksum decides
	verified bool
	resumed  bool // some bytes are from an earlier run, or from a server whose ETag changed
	changed  bool // since the last checkpoint
	sum      *digest
}

// checkpoint is the content of the .part.json file.
type checkpoint struct {
	hub.RemoteFile
	ETag     string    `json:"etag,omitempty"`
	Done     spans     `json:"done"`
	Verified bool      `json:"verified,omitempty"` // the checksum was right when the file's time was Changed
	Changed  time.Time `json:"changed,omitzero"`
}

// openPart opens or creates a part. It discards data of another version, and sets have to the number of bytes downloaded.
func openPart(root *os.Root, name string, want hub.RemoteFile, have *atomic.Int64) (*part, error) {
	p := &part{root: root, name: name, want: want, have: have}
	if err := root.MkdirAll(filepath.Dir(name), folderMode); err != nil {
		for dir := filepath.Dir(name); dir != "." && !isDiskFull(err); dir = filepath.Dir(dir) {
			if info, lstat := root.Lstat(dir); lstat == nil && info.Mode()&fs.ModeSymlink != 0 {
				return nil, hub.Errorf(hub.Internal, "%s in the models folder is a link that leads outside of it, and nothing is written "+
					"through one. Put a folder in its place, and resume the download.", dir)
			}
		}
		return nil, diskError("making the model's folder", err)
	}
	if info, err := root.Lstat(name + hub.PartSuffix); err == nil && !info.Mode().IsRegular() {
		if err := root.Remove(name + hub.PartSuffix); err != nil { // a link would lead the data elsewhere
			return nil, diskError("clearing away "+name+hub.PartSuffix, err)
		}
	}
	c, known := readCheckpoint(root, name, want)
	file, err := root.OpenFile(name+hub.PartSuffix, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, diskError("writing "+name+hub.PartSuffix, err)
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

// readCheckpoint reads the checkpoint of a file. It reports false for another version, or if the data doesn't match.
func readCheckpoint(root *os.Root, name string, want hub.RemoteFile) (checkpoint, bool) {
	info, err := root.Lstat(name + hub.PartSuffix)
	if err != nil || !info.Mode().IsRegular() {
		return checkpoint{}, false
	}
	text, err := root.ReadFile(name + hub.CheckpointSuffix)
	var c checkpoint
	if err != nil || json.Unmarshal(text, &c) != nil || c.RemoteFile != want {
		return checkpoint{}, false
	}
	c.Done = c.Done.within(min(want.Size, info.Size()))
	c.Verified = c.Verified && c.Done.bytes() == want.Size && info.Size() == want.Size && info.ModTime().Equal(c.Changed)
	return c, true
}

func (p *part) reset() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.taken, p.etag, p.verified, p.resumed, p.changed = nil, nil, "", false, false, true
	close(p.sum.ended)
	p.sum = newDigest(p.want)
	p.have.Store(0)
	if err := p.file.Truncate(0); err != nil {
		return diskError("emptying "+p.name+hub.PartSuffix, err)
	}
	return nil
}

// take returns a span of at most this many bytes that nobody is downloading; an empty one if there is none.
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

// giveBack ends the download of a span from take, complete or not.
func (p *part) giveBack(s span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = slices.DeleteFunc(p.taken, func(taken span) bool { return taken == s })
}

func (p *part) write(b []byte, at int64) error {
	if _, err := p.file.WriteAt(b, at); err != nil {
		return diskError("writing "+p.name+hub.PartSuffix, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = p.done.add(span{at, at + int64(len(b))})
	p.changed = true
	p.have.Store(p.done.bytes())
	p.sum.reach(p.reached())
	return nil
}

// reached returns the number of bytes without a gap. p.mu is held.
func (p *part) reached() int64 {
	if len(p.done) == 0 || p.done[0].From > 0 {
		return 0
	}
	return p.done[0].To
}

// tag returns the ETag of the downloaded version; empty if it is unknown or of no use.
func (p *part) tag() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.anyETag {
		return ""
	}
	return p.etag
}

// learn records the ETag of a response, and reports whether it matches the data downloaded so far.
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

func (p *part) follow(ctx context.Context) {
	for ctx.Err() == nil {
		p.mu.Lock()
		sum := p.sum
		p.mu.Unlock()
		sum.follow(ctx, p.file)
	}
}

// verify completes the checksum of a complete part. If it is wrong, the data is discarded and the error is a *hub.Error.
func (p *part) verify(ctx context.Context) error {
	if p.verified {
		return nil
	}
	flushed := make(chan error, 1)
	go func() { flushed <- p.file.Sync() }() // meanwhile: both take about as long
	got, ok, err := p.sum.holds(ctx, p.file, p.want.Size)
	if failed := <-flushed; failed != nil {
		return diskError("writing "+p.name+hub.PartSuffix, failed) // it is told only once
	}
	if err != nil {
		return err
	}
	if !ok {
		resumed := p.resumed
		if err := p.reset(); err != nil {
			return err
		}
		p.resumed = resumed // reset has cleared it, but the caller needs it
		return hub.Differs(hub.OtherSum, "%s has the checksum %s, but the hub says %s: it was damaged on the way, or the hub is wrong. "+
			"Nothing of it was kept.", p.want.Path, got, p.sum.want)
	}
	p.mu.Lock()
	p.verified, p.changed = true, true
	p.mu.Unlock()
	return nil
}

// save writes a checkpoint if anything has changed.
func (p *part) save() error {
	p.saving.Lock()
	defer p.saving.Unlock()
	p.mu.Lock()
	c := checkpoint{RemoteFile: p.want, ETag: p.etag, Done: append(spans(nil), p.done...), Verified: p.verified}
	changed := p.changed
	p.changed = false
	p.mu.Unlock()
	if !changed {
		return nil
	}
	if err := p.file.Sync(); err != nil {
		return diskError("writing "+p.name+hub.PartSuffix, err)
	}
	if c.Verified {
		info, err := p.file.Stat()
		if err != nil {
			return diskError("looking at "+p.name+hub.PartSuffix, err)
		}
		c.Changed = info.ModTime()
	}
	write := func(w io.Writer) error { return json.NewEncoder(w).Encode(c) }
	if err := atomicfile.Write(p.root, p.name+hub.CheckpointSuffix, 0o600, write); err != nil {
		return diskError("writing the checkpoint of "+p.name, err)
	}
	return nil
}

func (p *part) close() error {
	err := p.save()
	return errors.Join(err, p.file.Close())
}

// installFile renames a verified part to its final name. The part must be closed.
func installFile(root *os.Root, name string) error {
	if err := root.Rename(name+hub.PartSuffix, name); err != nil {
		return diskError("renaming "+name+hub.PartSuffix, err)
	}
	_ = root.Remove(name + hub.CheckpointSuffix) // it means nothing without the part
	return nil
}

// removePart deletes the data and the checkpoint of an incomplete file.
func removePart(root *os.Root, name string) error {
	var errs error
	for _, suffix := range []string{hub.PartSuffix, hub.CheckpointSuffix} {
		if err := root.Remove(name + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

func diskError(doing string, err error) error {
	if isDiskFull(err) {
		return hub.Errorf(hub.NoSpace, "The disk is full (%s). Free some space, and resume the download: what was fetched is kept.",
			doing)
	}
	return hub.Errorf(hub.Internal, "%s: %w. Check the models folder and its rights, and resume the download.", doing, err)
}

// span is the range [From, To) of a file's bytes.
type span struct{ From, To int64 }

// spans are sorted ranges of a file that neither touch nor overlap.
type spans []span

func (s spans) add(n span) spans {
	if n.From >= n.To {
		return s
	}
	// n touches the spans [i, j)
	i, _ := slices.BinarySearchFunc(s, n.From, func(have span, from int64) int { return cmp.Compare(have.To, from) })
	j := i
	for j < len(s) && s[j].From <= n.To {
		n.From, n.To = min(n.From, s[j].From), max(n.To, s[j].To)
		j++
	}
	if j == i+1 { // the common case: a span has grown
		s[i] = n
		return s
	}
	return slices.Replace(s, i, j, n)
}

// gap returns the first range below size that isn't covered; an empty one if there is none.
func (s spans) gap(size int64) span {
	at := int64(0)
	for _, have := range s {
		if have.From > at {
			return span{at, have.From}
		}
		at = max(at, have.To)
	}
	return span{at, max(at, size)}
}

func (s spans) bytes() int64 {
	n := int64(0)
	for _, have := range s {
		n += have.To - have.From
	}
	return n
}

// within returns the spans below a size; none if they aren't in order.
func (s spans) within(size int64) spans {
	var all spans
	last := int64(-1)
	for _, have := range s {
		if have.From <= last || have.From < 0 || have.To <= have.From {
			return nil
		}
		last = have.To
		all = all.add(span{have.From, min(have.To, size)})
	}
	return all
}
