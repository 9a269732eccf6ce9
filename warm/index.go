package warm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// group has the states of a print.
type group struct {
	name    string
	entries map[string]*entry // by id
	shelves int               // that are open
}

func (g *group) place(id string) string { return g.name + "/" + id }

func (g *group) path(s *Store, id, suffix string) string {
	return filepath.Join(s.dir, g.name, id+suffix)
}

// entry is a state in the index.
type entry struct {
	group  *group
	id     string
	record record       // only Used changes
	prompt prefix.Chain // record.Prompt, unpacked
	misses int          // in a row
	dirty  bool         // Used isn't written yet
}

// newEntry returns the entry of a record that was checked.
func newEntry(g *group, id string, r *record, now time.Time) *entry {
	e := &entry{group: g, id: id, record: *r}
	e.prompt, _ = unpack(r.Prompt)
	e.record.Prompt = nil // it is in memory once
	if e.record.Used.After(now) {
		e.record.Used = now // the clock was wrong
	}
	return e
}

// write writes the description of a state.
func (s *Store) write(g *group, id string, r *record, prompt prefix.Chain) error {
	full := *r
	full.Prompt = pack(prompt)
	content, err := full.encode(&s.secret, g.place(id))
	if err != nil {
		return err
	}
	if len(content) > recordBytes {
		return fmt.Errorf("%w: a description of %d bytes", errDamaged, len(content))
	}
	return atomicfile.WriteFile(g.path(s, id, recordSuffix), 0o600, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// all returns the entries that match. The caller holds mu.
func (s *Store) all(match func(*entry) bool) []*entry {
	var found []*entry
	for _, g := range s.groups {
		for _, e := range g.entries {
			if match(e) {
				found = append(found, e)
			}
		}
	}
	return found
}

// forget takes entries out of the index. The caller holds mu, and then discards them without it.
func (s *Store) forget(entries []*entry) {
	for _, e := range entries {
		delete(e.group.entries, e.id)
		s.leave(e.group)
	}
}

// leave drops a group that nobody needs. The caller holds mu.
func (s *Store) leave(g *group) {
	if len(g.entries) == 0 && g.shelves == 0 && s.groups[g.name] == g {
		delete(s.groups, g.name)
	}
}

// discard removes the files of entries that aren't in the index any more.
func (s *Store) discard(entries []*entry) {
	for _, e := range entries {
		s.removeState(e.group, e.id)
	}
}

// removeState removes the description first: without it, the state is none.
func (s *Store) removeState(g *group, id string) {
	s.remove(g.path(s, id, recordSuffix))
	s.remove(g.path(s, id, stateSuffix))
}

// remove removes a file, or notes that it is still to be removed.
func (s *Store) remove(path string) {
	err := os.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	s.mu.Lock()
	first := len(s.remains) == 0
	s.remains = append(s.remains, path)
	s.mu.Unlock()
	if first { // the others have the same reason
		s.log.Warn("files of saved states of prompts couldn't be removed; this is tried again every hour", "file", path, "error", err)
	}
}

// flush writes when states were used and what was measured, and removes what couldn't be removed before.
func (s *Store) flush() {
	s.mu.Lock()
	remains := s.remains
	s.remains = nil
	changed := s.all(func(e *entry) bool { return e.dirty })
	records := make([]record, len(changed))
	for i, e := range changed {
		e.dirty = false
		records[i] = e.record
	}
	s.mu.Unlock()
	for _, path := range remains {
		s.remove(path)
	}
	s.writeUse(changed, records)
	s.noteRates()
}

// writeUse writes when entries were used.
func (s *Store) writeUse(entries []*entry, records []record) {
	for i, e := range entries {
		err := s.write(e.group, e.id, &records[i], e.prompt)
		s.mu.Lock()
		exists := e.group.entries[e.id] == e
		s.mu.Unlock()
		switch {
		case !exists:
			s.removeState(e.group, e.id)
		case err != nil:
			s.log.Warn("the description of a saved state couldn't be written", "error", err)
			return
		}
	}
}
