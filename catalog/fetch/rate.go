package fetch

import (
	"sync"
	"time"
)

const (
	// rateWindow is how far back the rate looks: long enough to be steady, short enough to show that nothing comes.
	rateWindow  = 5 * time.Second
	rateBuckets = 20
	rateBucket  = rateWindow / rateBuckets
)

// rate measures bytes per second over the last seconds.
type rate struct {
	mu      sync.Mutex
	started time.Time // of the measuring; zero: it hasn't begun
	slot    int64     // the bucket that is being filled, counted from the start
	buckets [rateBuckets]int64
}

// start begins anew.
func (r *rate) start(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started, r.slot, r.buckets = now, 0, [rateBuckets]int64{}
}

// add counts bytes that came.
func (r *rate) add(n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forward(now)
	r.buckets[r.slot%rateBuckets] += int64(n)
}

// perSecond is the average over the window, or since the start if that is nearer. It falls to 0 when nothing comes.
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
	// the bucket being filled is younger than the others, so the window is that much shorter
	elapsed := now.Sub(r.started)
	length := min(elapsed, elapsed-time.Duration(r.slot)*rateBucket+(rateBuckets-1)*rateBucket)
	return float64(sum) / max(length, time.Millisecond).Seconds()
}

// forward empties the buckets whose time has come. r.mu is held.
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
