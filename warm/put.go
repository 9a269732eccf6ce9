package warm

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// diskPause is the time for which nothing is written when writing has failed.
const diskPause = 5 * time.Minute

// put is a state on its way from a shelf's folder into the index.
type put struct {
	shelf    *Shelf
	from     string // in the shelf's folder
	meta     record // without its checksum; it doesn't change
	id       string
	checksum uint32
	now      time.Time

	done chan struct{} // closed when nothing more happens

	// The store's mu guards these.
	dropped   bool // by a deletion
	described bool // or just being described: it would be a state after a crash
}

// Put keeps a file that the engine has written into Folder, under the name file, whose state st describes. It waits until the
// disk has it. It replaces the states of the same owner that the prompt continues, unless they are less than half as long: those
// may be beginnings that other prompts share. If it returns an error the file is deleted. The error is [ErrOff], [ErrDeleted], or
// one of the disk or of the file, for the log.
func (h *Shelf) Put(file string, st prefix.State) error {
	from, err := h.file(file)
	if err != nil {
		return err
	}
	p, err := h.begin(from, st)
	if err != nil {
		h.store.remove(from)
		return fmt.Errorf("keeping the state of a prompt: %w", err)
	}
	defer p.end()
	for _, step := range p.steps() {
		if err := step(); err != nil {
			p.discard()
			return fmt.Errorf("keeping the state of a prompt: %w", err)
		}
	}
	return nil
}

// begin checks what is said about a state. The caller ends what is returned.
func (h *Shelf) begin(from string, st prefix.State) (*put, error) {
	if st.PromptTokens <= 0 || st.PromptTokens > st.Tokens {
		st.PromptTokens = st.Tokens
	}
	var id [idBytes]byte
	_, _ = rand.Read(id[:]) // never fails
	s := h.store
	p := &put{shelf: h, from: from, id: hex.EncodeToString(id[:]), now: s.now(), done: make(chan struct{})}
	p.meta = record{Listed: Listed{h.model, st, p.now, p.now}}
	if err := p.meta.check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case h.retired || s.gone.has(&st, p.now):
		return nil, ErrDeleted
	case h.isShut():
		return nil, ErrOff
	}
	h.puts.Add(1)
	s.puts[p] = true
	return p, nil
}

func (p *put) end() {
	s := p.shelf.store
	s.mu.Lock()
	delete(s.puts, p)
	s.mu.Unlock()
	close(p.done)
	p.shelf.puts.Done()
}

// steps are what is done, in order. A crash between two of them leaves nothing that is taken for a state, or all of it.
func (p *put) steps() []func() error {
	return []func() error{p.settle, p.move, p.describe, p.enter, p.note}
}

// settle checks the file, and has the disk write it.
func (p *put) settle() (err error) {
	s := p.shelf.store
	file, info, err := openPlain(p.from, os.O_RDWR)
	if err != nil {
		return s.failing(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	s.mu.Lock()
	size := s.size()
	written := min(info.Size(), size+1) // a file with holes may look huge
	s.ledger.add(written, p.now)        // whatever becomes of it
	s.count(p.shelf.model).Written += written
	s.mu.Unlock()
	if info.Size() != p.meta.Bytes {
		return fmt.Errorf("the engine has written %d bytes, and says that they are %d", info.Size(), p.meta.Bytes)
	}
	if p.meta.Bytes > size {
		return fmt.Errorf("a state of %d bytes is larger than all may be together, %d", p.meta.Bytes, size)
	}
	if p.checksum, err = checksum(file, p.meta.Bytes); err != nil {
		return err
	}
	if err := file.Chmod(0o600); err != nil {
		return err
	}
	return s.failing(file.Sync())
}

// move puts the file where it stays.
func (p *put) move() error {
	s, g := p.shelf.store, p.shelf.group
	to := s.path(g, p.id, stateSuffix)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return s.failing(err)
	}
	return s.failing(os.Rename(p.from, to))
}

// describe writes the description, which makes the file a state. From now on, a deletion waits for the end.
func (p *put) describe() error {
	s := p.shelf.store
	s.mu.Lock()
	p.described = !p.dropped
	s.mu.Unlock()
	if !p.described {
		return ErrDeleted
	}
	return s.failing(s.writeRecord(p.shelf.group, p.id, p.record()))
}

func (p *put) record() *record {
	r := p.meta
	r.Checksum = p.checksum
	return &r
}

// enter puts the state into the index, and takes out what it replaces and what there is no room for.
func (p *put) enter() error {
	h, s := p.shelf, p.shelf.store
	room := s.room()
	s.mu.Lock()
	if p.dropped {
		s.mu.Unlock()
		return ErrDeleted
	}
	var replaced []*entry // those that are of no use any more
	for _, e := range h.group.entries {
		continues := e.record.Owner == p.meta.Owner && e.record.Prompt.Common(p.meta.Prompt) == len(e.record.Prompt)
		if continues && e.record.PromptTokens >= p.meta.PromptTokens/2 {
			replaced = append(replaced, e)
		}
	}
	s.forget(replaced)
	held, owners := s.held()+p.meta.Bytes, s.owners() // its file is on the disk already
	owners[p.meta.Owner] += p.meta.Bytes
	limit := min(s.size(), held+room)
	if p.meta.Bytes > limit || len(owners) > 1 && p.meta.Bytes > limit/2 && held > limit {
		for _, e := range replaced {
			h.group.entries[e.id] = e
		}
		s.mu.Unlock()
		return fmt.Errorf("there is no room for a state of %d bytes", p.meta.Bytes)
	}
	evicted := s.oldest(limit, limit, &p.meta.State)
	s.forget(evicted)
	h.group.entries[p.id] = newEntry(h.group, p.id, p.record(), p.now)
	s.count(h.model).Saves++
	s.mu.Unlock()
	s.discard(append(replaced, evicted...))
	return nil
}

// note writes down what was written today and what was measured. It matters little if that fails.
func (p *put) note() error {
	s := p.shelf.store
	s.mu.Lock()
	written, _ := json.Marshal(&s.ledger)
	s.mu.Unlock()
	s.note(ledgerFile, written)
	s.noteRates()
	return nil
}

func (p *put) discard() {
	s := p.shelf.store
	s.remove(p.from)
	s.removeState(p.shelf.group, p.id)
}

// errNoState means that a state has been deleted or replaced since it was found.
var errNoState = errors.New("the state isn't kept any more")

// Lay checks the file of a state, and puts it into Folder under the name that is returned. Lift removes it from there. A file
// that isn't as it was written is deleted, and is an error. So is the end of ctx, since a disk may be slow.
func (h *Shelf) Lay(ctx context.Context, id string) (file string, err error) {
	s := h.store
	s.mu.Lock()
	e := h.group.entries[id]
	if e == nil || h.isShut() {
		s.mu.Unlock()
		return "", errNoState
	}
	h.laid++
	file = fmt.Sprintf("%s-%d%s", id, h.laid, stateSuffix)
	s.mu.Unlock()
	to, err := h.file(file)
	if err != nil {
		return "", err
	}
	copied, err := h.layAs(ctx, e, to)
	if err != nil {
		if isLost(err) {
			h.Drop(id, err)
		}
		return "", fmt.Errorf("reading the saved state of a prompt: %w", err)
	}
	if err := h.laidAs(e, file, copied); err != nil {
		return "", err
	}
	return file, nil
}

// laidAs counts a state that was laid. It takes it back if the state has been deleted meanwhile.
func (h *Shelf) laidAs(e *entry, file string, copied int64) error {
	s := h.store
	s.mu.Lock()
	isKept := h.group.entries[e.id] == e && !h.closed
	if isKept {
		c := s.count(e.record.Model)
		c.Restores++
		c.Read += e.record.Bytes
		s.ledger.add(copied, s.now())
		c.Written += copied
		e.record.Used, e.dirty = s.now(), true
	}
	s.mu.Unlock()
	if !isKept {
		h.Lift(file)
		return errNoState
	}
	return nil
}

// layAs checks the file of a state, and puts it under another name. It returns how many bytes it had to copy.
func (h *Shelf) layAs(ctx context.Context, e *entry, to string) (copied int64, err error) {
	from := h.store.path(e.group, e.id, stateSuffix)
	file, info, err := openPlain(from, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	if info.Size() != e.record.Bytes {
		return 0, fmt.Errorf("%w: %d bytes instead of %d", errDamaged, info.Size(), e.record.Bytes)
	}
	sum, err := checksum(while{ctx, file}, e.record.Bytes)
	if err == nil && sum != e.record.Checksum {
		err = fmt.Errorf("%w: its checksum is another", errDamaged)
	}
	if err != nil {
		return 0, err
	}
	if os.Link(from, to) == nil {
		linked, err := os.Lstat(to)
		if err != nil {
			return 0, notTheSource(err)
		}
		if !os.SameFile(info, linked) {
			return 0, errors.Join(fmt.Errorf("%w: it was replaced", errDamaged), os.Remove(to))
		}
		return 0, nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return e.record.Bytes, copyTo(to, while{ctx, file})
}

// while is a reader that ends with its context.
type while struct {
	ctx  context.Context
	from io.Reader
}

func (w while) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.from.Read(p)
}

// copyTo makes a copy where the file system has no hard links.
func copyTo(path string, from io.Reader) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return notTheSource(err)
	}
	_, err = io.Copy(file, from)
	if err = errors.Join(err, file.Close()); err != nil {
		return notTheSource(errors.Join(err, os.Remove(path)))
	}
	return nil
}

// notTheSource hides what an error is from [isLost]: that a copy can't be made says nothing about the state.
func notTheSource(err error) error { return fmt.Errorf("copying it: %v", err) } //nolint:errorlint // see above

// Lift removes a file from Folder.
func (h *Shelf) Lift(file string) {
	if path, err := h.file(file); err == nil {
		h.store.remove(path)
	}
}
