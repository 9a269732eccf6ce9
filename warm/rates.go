package warm

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"
)

const (
	// leastTimed is how many tokens of a prompt an engine must have processed for their time to count. The first few cost more.
	leastTimed = 32
	// timeWeight is how many tokens the average of their times counts as. Those of a long prompt outweigh what was known: a token of a
	// short one takes a GPU several times as long, and it is long prompts that are saved.
	timeWeight = 1024
	// leastTook is the shortest time that is measured. Shorter ones are mostly overhead.
	leastTook = time.Millisecond
	// ratesBytes bounds the file of the rates.
	ratesBytes = 4 << 20
)

// Rates are what the states of a model have cost on this machine, as far as that counts at a moment. A zero field is unknown.
type Rates struct {
	Prompt  time.Duration `json:"ns_per_prompt_token,omitempty"` // to process a token of a prompt
	Bytes   float64       `json:"bytes_per_token,omitempty"`     // of a state
	Save    Speed         `json:"save,omitzero"`
	Restore Speed         `json:"restore,omitzero"` // with the time to check the file

	now time.Time
}

// Speed is how fast files were written or read.
type Speed struct {
	Rate float64   `json:"bytes_per_second"`
	At   time.Time `json:"at"` // when it was last measured
}

// isKnown reports whether a speed was measured lately.
func (s Speed) isKnown(now time.Time) bool { return s.Rate > 0 && now.Sub(s.At) < ratesCount }

// measure adds a measurement. What is known fades quickly, since it depends on what else the disk does.
func (s *Speed) measure(bytes int64, took time.Duration, now time.Time) {
	rate := float64(bytes) / max(took, leastTook).Seconds()
	if s.isKnown(now) {
		rate = (s.Rate + rate) / 2
	}
	*s = Speed{rate, now}
}

// Rates returns what is known of the shelf's model.
func (h *Shelf) Rates() Rates {
	s := h.store
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rates[h.model]
	r.now = s.now()
	return r
}

// Processed records that an engine has processed tokens of a prompt.
func (h *Shelf) Processed(tokens int, took time.Duration) {
	h.learn(func(r *Rates, _ time.Time) {
		if tokens < leastTimed || took <= 0 {
			return
		}
		each := took / time.Duration(tokens)
		if r.Prompt > 0 {
			each = r.Prompt + time.Duration(float64(each-r.Prompt)*float64(tokens)/float64(tokens+timeWeight))
		}
		r.Prompt = max(1, each)
	})
}

// Saved records that an engine has written a state, whatever becomes of it.
func (h *Shelf) Saved(tokens int, bytes int64, took time.Duration) {
	h.learn(func(r *Rates, now time.Time) {
		r.Bytes = float64(bytes) / float64(tokens)
		r.Save.measure(bytes, took, now)
	})
}

// Restored records that a state was restored.
func (h *Shelf) Restored(bytes int64, took time.Duration) {
	h.learn(func(r *Rates, now time.Time) { r.Restore.measure(bytes, took, now) })
}

func (h *Shelf) learn(change func(r *Rates, now time.Time)) {
	s := h.store
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rates[h.model]
	change(&r, s.now())
	s.rates[h.model], s.learnt = r, true
}

// Rates returns what is known of all models, by key.
func (s *Store) Rates() map[string]Rates {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Rates, len(s.rates))
	for model, r := range s.rates {
		r.now = s.now()
		all[model] = r
	}
	return all
}

// readRates reads what was measured before the store was opened. What makes no sense is unknown.
func (s *Store) readRates() {
	file, _, err := openPlain(filepath.Join(s.dir, ratesFile), os.O_RDONLY)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	var found map[string]Rates
	if json.NewDecoder(io.LimitReader(file, ratesBytes)).Decode(&found) != nil {
		return
	}
	now := s.now()
	for model, r := range found {
		for _, speed := range []*Speed{&r.Save, &r.Restore} {
			if speed.At.After(now) {
				speed.At = now // the clock was wrong
			}
		}
		if r.Prompt >= 0 && r.Bytes >= 0 && r.Save.Rate >= 0 && r.Restore.Rate >= 0 {
			s.rates[model] = r
		}
	}
}

// Note writes down what was measured. It matters little if that fails.
func (h *Shelf) Note() { h.store.noteRates() }

func (s *Store) noteRates() {
	s.mu.Lock()
	learnt := s.learnt
	s.learnt = false
	content, _ := json.Marshal(s.rates)
	s.mu.Unlock()
	if learnt {
		s.note(ratesFile, content)
	}
}

const (
	// ratesCount is how long a measured speed counts. Then it is unknown, and one state is saved, and one restored, to measure it again:
	// the disk may have been busy, or be another one.
	ratesCount = 7 * 24 * time.Hour
	// slowCounts is how long a restore that was slower than usualRestore counts as it was. Later, others are expected to be as fast as
	// that: a plain solid state disk, in bytes in a second.
	slowCounts   = 10 * time.Minute
	usualRestore = 500e6
	// restoreOverhead is what a restore costs besides reading, and restoreCost what it is counted with, in percent: it stops the
	// engine's other answers, too.
	restoreOverhead = 50 * time.Millisecond
	restoreCost     = 125
	// usualPrompt is the time to process a token of a prompt until it is known.
	usualPrompt = time.Millisecond
)

// Balance has the two ways in which an engine gets to a part of a prompt.
type Balance struct {
	Process time.Duration // it processes the part
	Restore time.Duration // it restores a state
}

// Pays reports whether to restore a state is the faster way. It decides about restores, and about saves as well: no state is
// saved that wouldn't be restored.
func (b Balance) Pays() bool { return b.Process >= b.Restore }

// Balance compares processing some tokens with restoring a state of some bytes; 0: the size is unknown. A restore of unknown duration
// counts as one of no duration: it is tried once.
func (r *Rates) Balance(tokens int, bytes int64) Balance {
	b := Balance{r.Processing(tokens), restoreOverhead}
	if rate := r.Reading(); rate > 0 {
		b.Restore += seconds(float64(bytes) / rate * restoreCost / 100)
	}
	return b
}

// Processing estimates the time to process tokens of a prompt.
func (r *Rates) Processing(tokens int) time.Duration {
	return time.Duration(tokens) * cmp.Or(r.Prompt, usualPrompt)
}

// Saving estimates the time to save a state of some tokens; 0: unknown.
func (r *Rates) Saving(tokens int) time.Duration {
	if !r.Save.isKnown(r.now) {
		return 0
	}
	return seconds(r.Bytes * float64(tokens) / r.Save.Rate)
}

// Size estimates the bytes of a state; 0: unknown.
func (r *Rates) Size(tokens int) int64 { return int64(r.Bytes * float64(tokens)) }

// Reading returns how many bytes of a state are restored in a second, as far as known; 0: unknown. Until a restore was measured, it is
// as fast as a save: what was written lately is in memory, from where it is read at least as fast.
func (r *Rates) Reading() float64 {
	switch {
	case !r.Restore.isKnown(r.now) && r.Save.isKnown(r.now):
		return r.Save.Rate
	case !r.Restore.isKnown(r.now):
		return 0
	case r.now.Sub(r.Restore.At) > slowCounts:
		return max(r.Restore.Rate, usualRestore)
	default:
		return r.Restore.Rate
	}
}

// PaysFrom returns from how many tokens on to restore a state pays; 0: it never does. It isn't known before all is measured.
func (r *Rates) PaysFrom() (tokens int, known bool) {
	rate := r.Reading()
	if r.Prompt == 0 || r.Bytes == 0 || rate == 0 {
		return 0, false
	}
	gain := r.Prompt.Seconds() - r.Bytes/rate*restoreCost/100 // for each token
	if gain <= 0 {
		return 0, true
	}
	return int(math.Ceil(min(restoreOverhead.Seconds()/gain, math.MaxInt32))), true
}

// seconds returns a duration, and the longest one if it is longer.
func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), float64(math.MaxInt64/2)))
}
