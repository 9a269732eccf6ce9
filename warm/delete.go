package warm

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// goneFor is the time for which nothing is kept of what was deleted: a save that began before takes less.
const goneFor = 5 * time.Minute

// gone remembers when conversations and owners were deleted.
type gone struct {
	conversations, owners map[string]time.Time
	sweepAt               int // at this number of marks of one kind, the old ones are dropped
}

func (g *gone) has(st *prefix.State, now time.Time) bool {
	return isGone(g.conversations, st.Conversation, now) || isGone(g.owners, st.Owner, now)
}

func isGone(all map[string]time.Time, id string, now time.Time) bool {
	at, deleted := all[id]
	return deleted && now.Sub(at) < goneFor
}

func (g *gone) add(all map[string]time.Time, id string, now time.Time) {
	all[id] = now
	if len(all) < g.sweepAt {
		return
	}
	maps.DeleteFunc(all, func(id string, _ time.Time) bool { return !isGone(all, id, now) })
	g.sweepAt = max(1000, 2*len(all))
}

// DeleteConversation deletes the states of a conversation, also those that are being saved: none are kept for some minutes.
func (s *Store) DeleteConversation(id string) {
	if id == "" {
		return
	}
	s.mu.Lock()
	s.gone.add(s.gone.conversations, id, s.now())
	s.deleteAll(func(r *Listed) bool { return r.Conversation == id })
}

// DeleteOwner deletes the states of an owner, also those that are being saved: none are kept for some minutes.
func (s *Store) DeleteOwner(owner string) {
	if owner == "" {
		return
	}
	s.mu.Lock()
	s.gone.add(s.gone.owners, owner, s.now())
	s.deleteAll(func(r *Listed) bool { return r.Owner == owner })
}

// DeleteModel deletes the states of a model, and what they have cost. The shelves of its launches keep and find nothing more.
func (s *Store) DeleteModel(key string) {
	s.mu.Lock()
	for h := range s.shelves {
		h.retired = h.retired || h.model == key
	}
	if _, measured := s.rates[key]; measured {
		delete(s.rates, key)
		s.learnt = true
	}
	s.deleteAll(func(r *Listed) bool { return r.Model == key })
}

// Clear deletes the states that match, also those that are being saved. It returns how many they were, and their bytes. match must not
// use the store.
func (s *Store) Clear(match func(*Listed) bool) (n int, bytes int64) {
	s.mu.Lock()
	return s.deleteAll(match)
}

// deleteAll deletes the states that match, and those that are just being put. The caller holds mu, which it releases.
func (s *Store) deleteAll(match func(*Listed) bool) (n int, bytes int64) {
	var waits []*put
	for p := range s.puts {
		if !match(&p.meta.Listed) {
			continue
		}
		if p.dropped = true; p.described {
			waits = append(waits, p)
		}
	}
	entries := s.all(func(e *entry) bool { return match(&e.record.Listed) })
	s.forget(entries)
	s.mu.Unlock()
	s.discard(entries)
	var folders []string
	for _, p := range waits {
		<-p.done
		folders = append(folders, filepath.Join(s.dir, p.shelf.group.name))
	}
	for _, e := range entries {
		bytes += e.record.Bytes
		folders = append(folders, filepath.Join(s.dir, e.group.name))
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		if err := syncFolder(folder); err != nil {
			s.log.Warn("deleted states of prompts may be back after a power failure", "error", err)
		}
	}
	return len(entries), bytes
}

// Listed is a state that is kept.
type Listed struct {
	Model string `json:"model"`
	prefix.State
	Created time.Time `json:"created"`
	Used    time.Time `json:"used"`
}

// Counts are what was done for a model since the store was opened, and what it keeps of it.
type Counts struct {
	Model    string
	Saves    int64 // states that were put
	Restores int64 // states that were laid
	Misses   int64 // restores of which the engine used less than half of what was expected
	Refused  int64 // states that were deleted because they were damaged, or an engine refused them
	Spared   int64 // tokens of prompts that engines didn't process, thanks to restores
	Written  int64 // bytes
	Read     int64 // bytes
	States   int   // that are kept now
	Held     int64 // bytes that are kept now
}

// List returns the states that are kept, the last used one first.
func (s *Store) List() []Listed {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Listed{}
	for _, e := range s.all(func(*entry) bool { return true }) {
		list = append(list, e.record.Listed)
	}
	slices.SortFunc(list, func(a, b Listed) int {
		return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Model, b.Model), cmp.Compare(b.Tokens, a.Tokens))
	})
	return list
}

// Counts returns the counts of all models that have any, by key.
func (s *Store) Counts() []Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]Counts{}
	for model, c := range s.counts {
		counts[model] = *c
	}
	for _, e := range s.all(func(*entry) bool { return true }) {
		c := counts[e.record.Model]
		c.Model = e.record.Model
		c.States++
		c.Held += e.record.Bytes
		counts[e.record.Model] = c
	}
	return slices.SortedFunc(maps.Values(counts), func(a, b Counts) int { return cmp.Compare(a.Model, b.Model) })
}

// count returns the counts of a model. The caller holds mu.
func (s *Store) count(model string) *Counts {
	c := s.counts[model]
	if c == nil {
		c = &Counts{Model: model}
		s.counts[model] = c
	}
	return c
}
