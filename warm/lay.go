package warm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

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
