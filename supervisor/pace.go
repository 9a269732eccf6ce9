package supervisor

import (
	"math"
	"time"
)

const (
	// What is known of a queue's speed fades: after so much time, and after so many waiters more, it counts for a third.
	paceMemory  = time.Minute
	paceWaiters = 128
	// maxRetryAfter is as long as common clients are willing to wait; they ignore longer times and come back at once.
	maxRetryAfter = time.Minute
)

// pace is how fast waiters for a model are served, whatever they wait for: slots, loads, or other models. Older observations
// count for less.
type pace struct {
	served float64       // waiters
	took   time.Duration // while so many were served
	last   time.Time     // when the last was
}

// fade has what was seen until now count for less, after some time and one more waiter.
func (p *pace) fade(by time.Duration) {
	weight := math.Exp(-by.Seconds()/paceMemory.Seconds() - 1./paceWaiters)
	p.served *= weight
	p.took = time.Duration(float64(p.took) * weight)
}

// since is for how long nobody has been served although a waiter was there.
func (p *pace) since(w *Waiter, now time.Time) time.Duration {
	if w.Since.After(p.last) {
		return now.Sub(w.Since)
	}
	return now.Sub(p.last)
}

// learnPace notes that a waiter is served. One that hasn't waited tells nothing.
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

// retryAfter is when half of those who wait for a model will have been served, if that goes on as it did lately; the time for
// which nobody has been served since counts, too. Where nobody has been served before it is that time.
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
