package warm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// Shelf has the states that one launch can use, and a folder in which its engine reads and writes them. Its methods may wait
// for the disk, and are safe for concurrent use.
type Shelf struct {
	store  *Store
	model  string
	kind   kind
	group  *group
	folder string
	puts   sync.WaitGroup

	// The store's mu guards these.
	closed  bool
	retired bool // its model was deleted
	laid    int  // files, for their names
}

// Shelf returns the shelf of a launch. It has to be closed when the process has exited. It reads parts of the model's files.
// The error is [ErrOff], or that of a file that can't be read, or of a folder that can't be made; then no states can be kept.
func (s *Store) Shelf(p Print) (*Shelf, error) {
	s.mu.Lock()
	off := s.isOff()
	s.mu.Unlock()
	if off {
		return nil, ErrOff
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	launches := filepath.Join(s.dir, launchFolder)
	if err := os.MkdirAll(launches, 0o700); err != nil { // somebody may have removed it
		return nil, fmt.Errorf("making the folder for states of prompts: %w", err)
	}
	folder, err := os.MkdirTemp(launches, "")
	if err != nil {
		return nil, fmt.Errorf("making a folder for states of prompts: %w", err)
	}
	h := &Shelf{store: s, model: p.Model, kind: kind{p.Engine, p.Build, p.Architecture}, folder: folder}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.group = s.groups[name]; h.group == nil {
		h.group = &group{name: name, entries: map[string]*entry{}}
		s.groups[name] = h.group
	}
	h.group.shelves++
	s.shelves[h] = true
	return h, nil
}

// Folder is where the engine writes states and finds them, an absolute path. It is for this launch alone.
func (h *Shelf) Folder() string { return h.folder }

// Close removes the folder, when the Puts under way have ended. States are kept.
func (h *Shelf) Close() {
	s := h.store
	s.mu.Lock()
	if h.closed {
		s.mu.Unlock()
		return
	}
	h.closed = true
	s.mu.Unlock()
	h.puts.Wait()
	if err := os.RemoveAll(h.folder); err != nil {
		s.log.Warn("a folder couldn't be removed; this is tried again at the next start", "folder", h.folder, "error", err)
	}
	s.mu.Lock()
	delete(s.shelves, h)
	h.group.shelves--
	s.leave(h.group)
	s.mu.Unlock()
}

// isShut reports whether the shelf can't be used. The caller holds the store's mu.
func (h *Shelf) isShut() bool {
	v := h.store.verdicts[h.kind]
	return h.closed || h.retired || h.store.isOff() || v != nil && v.off
}

// Find returns the state that has most in common with a prompt. Of those that have equally much, it is one that the prompt
// continues, or else the smallest.
func (h *Shelf) Find(q Query) (Found, bool) {
	s := h.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.isShut() {
		return Found{}, false
	}
	var best *entry
	most := 0
	for _, e := range h.group.entries {
		if q.Private && e.record.Owner != q.Owner || q.Context > 0 && e.record.Tokens > q.Context {
			continue
		}
		if common := e.record.Common(q.Prompt); common > most || common == most && best != nil && e.isBetter(best, common) {
			best, most = e, common
		}
	}
	if best == nil {
		return Found{}, false
	}
	r := &best.record
	return Found{ID: best.id, Common: most, Tokens: r.Tokens, Bytes: r.Bytes}, true
}

func (h *Shelf) file(name string) (string, error) {
	if name != filepath.Base(name) || !filepath.IsLocal(name) {
		return "", fmt.Errorf("%q isn't the name of a file in the folder of the launch", name)
	}
	return filepath.Join(h.folder, name), nil
}

// Drop deletes a state that an engine has refused, or on which it died.
func (h *Shelf) Drop(id string, why error) {
	s := h.store
	s.mu.Lock()
	e := h.group.entries[id]
	if e == nil {
		s.mu.Unlock()
		return
	}
	s.forget([]*entry{e})
	s.count(e.record.Model).Refused++
	s.mu.Unlock()
	s.discard([]*entry{e})
	if why == nil {
		why = errors.New("unknown")
	}
	s.log.Warn("a saved state of a prompt was of no use, and is deleted", "model", e.record.Model, "error", why)
}

// trials is the number of restores by which it is decided whether an engine uses restored states at all. Some report success and use
// nothing, depending on version and architecture.
const trials = 2

// missesInARow is the number of misses after which a state is deleted: prompts only seem to have something in common with it.
const missesInARow = 2

// kind is what decides whether restored states are used.
type kind struct{ engine, build, architecture string }

// verdict is what is known about a kind.
type verdict struct {
	judged, missed int
	off            bool
}

// Judge records what a state was worth: how many of its tokens the engine was expected to use, and how many it did. Fewer than
// half are a miss. If the first two restores for prompts that continue a whole state are misses for an engine, a build and an
// architecture, their states are neither found nor saved until the next start. Prompts that leave a state before its end don't
// count for that: engines with a recurrent state go back to the last checkpoint, which may be far.
func (h *Shelf) Judge(id string, expected, used int) {
	if expected <= 0 {
		return
	}
	s := h.store
	missed := used < (expected+1)/2
	s.mu.Lock()
	c := s.count(h.model)
	c.Spared += int64(max(0, used))
	if missed {
		c.Misses++
	}
	e := h.group.entries[id]
	if e == nil || expected >= e.record.PromptTokens*9/10 {
		h.try(missed)
	}
	var useless []*entry
	if e != nil {
		if e.misses++; !missed {
			e.misses = 0
		}
		if e.misses >= missesInARow {
			useless = append(useless, e)
			s.forget(useless)
		}
	}
	s.mu.Unlock()
	s.discard(useless)
}

// try adds a restore to what is known about the shelf's kind. The caller holds the store's mu.
func (h *Shelf) try(missed bool) {
	s := h.store
	v := s.verdicts[h.kind]
	if v == nil {
		v = new(verdict)
		s.verdicts[h.kind] = v
	}
	if v.judged == trials {
		return
	}
	v.judged++
	if missed {
		v.missed++
	}
	if v.missed < trials {
		return
	}
	v.off = true
	s.log.Warn("the engine doesn't use the states of prompts that it restores, so none are saved for this kind of model until "+
		"the next start; another version of the engine may", "engine", h.kind.engine, "build", h.kind.build,
		"architecture", h.kind.architecture, "model", h.model)
}

const (
	// headBytes covers the header of most models: it has what decides how the weights are used.
	headBytes = 16 << 20
	// samples are read of the rest of a file: weights that were trained further differ nearly everywhere.
	samples     = 16
	sampleBytes = 64 << 10
)

// name returns the name of the folder for the states of a Print. It reads the files.
func (p *Print) name() (string, error) {
	sum := sha256.New()
	for _, word := range []string{"print 1", p.Model, p.Engine, p.Build, p.Architecture, p.Launch} {
		addNumber(sum, int64(len(word)))
		_, _ = io.WriteString(sum, word)
	}
	for _, path := range p.Files {
		file := sha256.New()
		if err := addFile(file, path); err != nil {
			return "", fmt.Errorf("identifying a file of the model %s: %w", p.Model, err)
		}
		_, _ = sum.Write(file.Sum(nil))
	}
	return hex.EncodeToString(sum.Sum(nil)[:idBytes]), nil
}

func addNumber(sum hash.Hash, n int64) {
	_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // any 64 bits will do
}

// addFile adds the size of a file, its beginning and samples of the rest, the last of which is its end.
func addFile(sum hash.Hash, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s isn't a regular file", path)
	}
	size := info.Size()
	addNumber(sum, size)
	if err := addPart(sum, file, 0, min(size, headBytes)); err != nil {
		return err
	}
	rest := size - headBytes
	if rest <= samples*sampleBytes {
		return addPart(sum, file, headBytes, max(0, rest))
	}
	for i := range int64(samples) {
		if err := addPart(sum, file, headBytes+(rest-sampleBytes)/(samples-1)*i, sampleBytes); err != nil {
			return err
		}
	}
	return addPart(sum, file, size-sampleBytes, sampleBytes)
}

func addPart(sum hash.Hash, file io.ReaderAt, from, n int64) error {
	read, err := io.Copy(sum, io.NewSectionReader(file, from, n))
	if err == nil && read != n {
		err = io.ErrUnexpectedEOF
	}
	return err
}
