package warm

import (
	"cmp"
	"math"
	"time"
)

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
