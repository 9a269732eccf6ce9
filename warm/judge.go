package warm

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
