package schedule

import (
	"math"
	"time"
)

const (
	// Older observations of a queue's pace count for less: after paceMemory, and after paceWaiters more waiters, for 1/e.
	paceMemory  = time.Minute
	paceWaiters = 128
	// maxRetryAfter is the longest time that common clients accept; they ignore a longer one and retry at once.
	maxRetryAfter = time.Minute
)

// pace is how fast the waiters for a model are served, whether they wait for slots, loads or other models. Older observations
// count for less.
type pace struct {
	served float64       // waiters
	took   time.Duration // in which they were served
	last   time.Time     // when the last one was served
}

// fade discounts earlier observations after some time and one more waiter.
func (p *pace) fade(by time.Duration) {
	weight := math.Exp(-by.Seconds()/paceMemory.Seconds() - 1./paceWaiters)
	p.served *= weight
	p.took = time.Duration(float64(p.took) * weight)
}

// since returns for how long no waiter has been served while w waited.
func (p *pace) since(w *Waiter, now time.Time) time.Duration {
	if w.Since.After(p.last) {
		return now.Sub(w.Since)
	}
	return now.Sub(p.last)
}

// learnPace records that a waiter is served. A request that didn't wait says nothing about the pace.
func (st *State) learnPace(w *Waiter, now time.Time) {
	if w.Kind != WaitSlots || !now.After(w.Since) {
		return
	}
	if st.Pace == nil {
		st.Pace = map[string]*pace{}
	}
	p := st.Pace[w.Key]
	if p == nil {
		p = &pace{}
		st.Pace[w.Key] = p
	}
	gap := p.since(w, now)
	p.fade(gap)
	p.served, p.took, p.last = p.served+1, p.took+gap, now
}

// retryAfter returns in how long half of a model's waiters will have been served at the recent pace, including the time since
// the last one was served. If none has been served yet it is that time alone.
func (st *State) retryAfter(key string, waiting int, now time.Time) time.Duration {
	var p pace
	if known := st.Pace[key]; known != nil {
		p = *known
	}
	for _, w := range st.Waiters {
		if w.Kind == WaitSlots && w.Key == key { // the first of them
			p.took += p.since(w, now)
			break
		}
	}
	after := p.took
	if p.served > 0 {
		after = time.Duration(float64(p.took) / p.served * float64(waiting) / 2)
	}
	return min(max(after.Round(time.Second), time.Second), maxRetryAfter)
}
