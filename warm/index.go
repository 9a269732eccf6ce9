package warm

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// group has the states of a print.
type group struct {
	name    string
	entries map[string]*entry // by id
	shelves int               // that are open
}

func (g *group) place(id string) string { return g.name + "/" + id }

// entry is a state in the index.
type entry struct {
	group  *group
	id     string
	record record // only Used changes
	misses int    // in a row
	dirty  bool   // Used isn't written yet
}

// newEntry returns the entry of a record that was checked.
func newEntry(g *group, id string, r *record, now time.Time) *entry {
	e := &entry{group: g, id: id, record: *r}
	if e.record.Used.After(now) {
		e.record.Used = now // the clock was wrong
	}
	return e
}

// index has the states of a store, by print. The store's mu guards it.
type index struct{ groups map[string]*group }

func newIndex() index { return index{map[string]*group{}} }

func (s *index) all(match func(*entry) bool) []*entry {
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

// forget takes entries out of the index. The caller then discards them without the lock.
func (s *index) forget(entries []*entry) {
	for _, e := range entries {
		delete(e.group.entries, e.id)
		s.leave(e.group)
	}
}

// leave drops a group that nobody needs.
func (s *index) leave(g *group) {
	if len(g.entries) == 0 && g.shelves == 0 && s.groups[g.name] == g {
		delete(s.groups, g.name)
	}
}

// flush writes when states were used and what was measured, and removes what couldn't be removed before.
func (s *Store) flush() {
	s.folder.mu.Lock()
	remains := s.remains
	s.remains = nil
	s.folder.mu.Unlock()
	for _, path := range remains {
		s.remove(path)
	}
	s.mu.Lock()
	changed := s.all(func(e *entry) bool { return e.dirty })
	records := make([]record, len(changed))
	for i, e := range changed {
		e.dirty = false
		records[i] = e.record
	}
	s.mu.Unlock()
	s.writeUse(changed, records)
	s.noteRates()
}

func (s *Store) writeUse(entries []*entry, records []record) {
	for i, e := range entries {
		err := s.writeRecord(e.group, e.id, &records[i])
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

// isBetter reports whether e is preferred to a state that has equally many tokens in common with a prompt: its whole prompt is
// of use, or it is smaller, or was used later.
func (e *entry) isBetter(o *entry, common int) bool {
	if whole := e.record.PromptTokens == common; whole != (o.record.PromptTokens == common) {
		return whole
	}
	if e.record.Bytes != o.record.Bytes {
		return e.record.Bytes < o.record.Bytes
	}
	return e.record.Used.After(o.record.Used)
}

const (
	recordVersion = 4
	// recordBytes bounds a description. One with a chain for a prompt of 100 MB is smaller.
	recordBytes = 4 << 20
)

// record is the description of a state, as it is in its file.
type record struct {
	Listed
	Checksum uint32 `json:"crc32c"`
}

// signed is a record in its envelope.
type signed struct {
	Version int             `json:"version"`
	MAC     []byte          `json:"mac"` // over the place of the state and its record
	State   json.RawMessage `json:"state"`
}

// encode returns the content of the file for a description. Only decode with the same key and place accepts it.
func (r *record) encode(key *secret, place string) ([]byte, error) {
	state, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(signed{recordVersion, key.mac(place, state), state})
}

// decode is the reverse of encode. Its error is errDamaged.
func decode(content []byte, key *secret, place string) (*record, error) {
	var s signed
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if s.Version != recordVersion || !hmac.Equal(s.MAC, key.mac(place, s.State)) {
		return nil, fmt.Errorf("%w: it is of another version or another home", errDamaged)
	}
	r := new(record)
	if err := json.Unmarshal(s.State, r); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return r, nil
}

func (r *record) check() error {
	byWeight := func(a, b prefix.Link) int { return cmp.Compare(a.Weight, b.Weight) }
	if r.Model == "" || r.Tokens <= 0 || r.PromptTokens <= 0 || r.PromptTokens > r.Tokens || r.Bytes <= 0 ||
		len(r.Prompt) == 0 || r.Prompt[0].Weight < 0 || !slices.IsSortedFunc(r.Prompt, byWeight) {
		return errors.New("a value is missing or out of range")
	}
	return nil
}

// secret is the content of the file of the key.
type secret [32]byte

func newSecret() (k secret) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

func (k *secret) chains() prefix.Key {
	return prefix.Key(binary.LittleEndian.Uint64(k.mac("the chains of prompts", nil)))
}

// mac authenticates a text at a place.
func (k *secret) mac(place string, text []byte) []byte {
	m := hmac.New(sha256.New, k[:])
	_, _ = fmt.Fprintf(m, "%s\n%s", place, text)
	return m.Sum(nil)
}
