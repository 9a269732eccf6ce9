package supervisor

import (
	"sync"
	"time"
)

// rates are what saves and restores have cost, by the key of the model.
type rates struct {
	mu    sync.Mutex
	byKey map[string]rate
}

// rate is what the states of a model cost. A zero field is unknown.
type rate struct {
	perToken float64 // bytes
	save     float64 // bytes in a second
	restore  float64 // bytes in a second
	restored time.Time
}

const (
	// usualRestore is the rate of a restore until it is known, in bytes in a second: that of a plain solid state disk.
	usualRestore = 500e6
	// restoreCounts is how long a slow restore keeps others from being tried.
	restoreCounts = 10 * time.Minute
	// leastTook is the shortest time that is measured. Shorter ones are mostly overhead.
	leastTook = time.Millisecond
)

func (r *rates) of(key string) rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKey[key]
}

func (r *rates) learn(key string, change func(*rate)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = map[string]rate{}
	}
	now := r.byKey[key]
	change(&now)
	r.byKey[key] = now
}

// saved records a save.
func (r *rates) saved(key string, state SlotState, took time.Duration) {
	r.learn(key, func(now *rate) {
		now.perToken = float64(state.Bytes) / float64(state.Tokens)
		now.save = averaged(now.save, state.Bytes, took)
	})
}

// restored records a restore.
func (r *rates) restored(key string, bytes int64, took time.Duration, at time.Time) {
	r.learn(key, func(now *rate) { now.restore, now.restored = averaged(now.restore, bytes, took), at })
}

// averaged returns the average of a rate and a new measurement. What is known fades quickly, since it depends on what else the disk
// does.
func averaged(before float64, bytes int64, took time.Duration) float64 {
	now := float64(bytes) / max(took, leastTook).Seconds()
	if before == 0 {
		return now
	}
	return (before + now) / 2
}

// bytes estimates the size of a state; 0: unknown.
func (r rate) bytes(tokens int) int64 { return int64(r.perToken * float64(tokens)) }

// saving estimates the time to save a state; 0: unknown.
func (r rate) saving(tokens int) time.Duration {
	if r.save == 0 {
		return 0
	}
	return seconds(r.perToken * float64(tokens) / r.save)
}

// restoring estimates the time to restore a state. The disk may have been busy the last time, so that doesn't count for long.
func (r rate) restoring(bytes int64, now time.Time) time.Duration {
	by := r.restore
	if now.Sub(r.restored) > restoreCounts {
		by = max(by, usualRestore)
	}
	return seconds(float64(bytes) / by)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
