package fetch

import (
	"sync"
	"time"
)

const (
	// rateWindow is long enough for a steady figure, and short enough to show that nothing arrives.
	rateWindow  = 5 * time.Second
	rateBuckets = 20
	rateBucket  = rateWindow / rateBuckets
)

// rate measures bytes per second over the last seconds.
type rate struct {
	mu      sync.Mutex
	started time.Time // start of the measurement; may be zero
	slot    int64     // current bucket, counted from the start
	buckets [rateBuckets]int64
}

// start begins a new measurement.
func (r *rate) start(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started, r.slot, r.buckets = now, 0, [rateBuckets]int64{}
}

// add counts bytes that have arrived.
func (r *rate) add(n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forward(now)
	r.buckets[r.slot%rateBuckets] += int64(n)
}

// perSecond returns the average over the window, or since the start if that is later. It falls to 0 if nothing arrives.
func (r *rate) perSecond(now time.Time) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started.IsZero() {
		return 0
	}
	r.forward(now)
	sum := int64(0)
	for _, n := range r.buckets {
		sum += n
	}
	// the current bucket isn't complete, so the window is shorter
	elapsed := now.Sub(r.started)
	length := min(elapsed, elapsed-time.Duration(r.slot)*rateBucket+(rateBuckets-1)*rateBucket)
	return float64(sum) / max(length, time.Millisecond).Seconds()
}

// forward clears buckets that have expired. r.mu is held.
func (r *rate) forward(now time.Time) {
	if r.started.IsZero() {
		r.started = now
	}
	slot := int64(now.Sub(r.started) / rateBucket)
	for i := r.slot + 1; i <= min(slot, r.slot+rateBuckets); i++ {
		r.buckets[i%rateBuckets] = 0
	}
	r.slot = max(r.slot, slot)
}
