package warm

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Listed is a state that is kept.
type Listed struct {
	Model, Owner  string
	Conversation  string // see State
	Tokens        int
	Bytes         int64
	Created, Used time.Time
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
		r := &e.record
		list = append(list, Listed{r.Model, r.Owner, r.Conversation, r.Tokens, r.Bytes, r.Created, r.Used})
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
