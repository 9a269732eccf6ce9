package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// maxOvertakes is how many requests with priority may overtake a waiter.
const maxOvertakes = 16

// Queue has the waiters: restarts first, then callers, in order of arrival except for turns and priority.
type Queue []*Waiter

func (q *Queue) add(w *Waiter) {
	at := len(*q)
	if w.Priority {
		at = q.priorityIndex(w)
	}
	*q = slices.Insert(*q, at, w)
	q.takeTurn(w)
}

// removeGone removes the waiters whose wait has ended.
func (q *Queue) removeGone() {
	*q = slices.DeleteFunc(*q, func(w *Waiter) bool { return w.gone })
}

func (q Queue) restarts() []*Waiter {
	if n := slices.IndexFunc(q, func(w *Waiter) bool { return w.Kind != WaitRestart }); n >= 0 {
		return q[:n]
	}
	return q
}

// restart returns the first pending restart that matches, or nil.
func (q Queue) restart(which func(*Waiter) bool) *Waiter {
	for _, w := range q.restarts() {
		if !w.gone && which(w) {
			return w
		}
	}
	return nil
}

func (q Queue) waiting(key string) (n int) {
	for _, w := range q {
		if w.isRequestFor(key) {
			n++
		}
	}
	return n
}

func (w *Waiter) isRequestFor(key string) bool { return w.Kind == WaitSlots && w.Key == key }

// priorityIndex returns the position in the queue for a waiter with priority: before waiters for the same model without
// priority, unless it would overtake one that was overtaken maxOvertakes times.
func (q Queue) priorityIndex(w *Waiter) int {
	at := len(q)
	for i := at - 1; i >= 0; i-- {
		other := q[i]
		if other.Overtaken >= maxOvertakes || (other.Key == w.Key && (other.Kind != WaitSlots || other.Priority)) {
			break
		}
		if other.Key == w.Key {
			at = i
		}
	}
	for _, other := range q[at:] {
		other.Overtaken++
	}
	if at < len(q) {
		w.Turn = q[at].Turn
	}
	return at
}

// takeTurn moves a new waiter forward so that the owners that wait for a model take turns: an owner's second request goes before any other
// owner's third. The first request of an owner is never overtaken, so each turn serves one request of each owner, however many the others
// send. Waiters for other models are unaffected: the model's waiters only permute the positions that they hold.
func (q Queue) takeTurn(w *Waiter) {
	if w.Kind != WaitSlots || w.Priority || !slices.ContainsFunc(q, func(o *Waiter) bool { return o.Key == w.Key && o.Owner != w.Owner }) {
		return
	}
	var indexes []int // in the queue, of the model's waiters without priority; the last is w's
	var turns []int   // of those waiters
	turn := map[string]int{}
	for i, other := range q {
		if other.gone || !other.isRequestFor(w.Key) {
			continue
		}
		if !other.Priority {
			indexes, turns = append(indexes, i), append(turns, turn[other.Owner])
		}
		turn[other.Owner]++
	}
	last := len(indexes) - 1
	at := last
	for at > 0 && turns[at-1] > turns[last] {
		at--
	}
	for i := last; i > at; i-- {
		before := q[indexes[i-1]]
		q[indexes[i]] = before
		before.Turn, w.Turn = w.Turn, before.Turn
	}
	q[indexes[at]] = w
}

// excess returns the request to refuse, if there are more than limit for the model of a new one; nil: none. It is the new one, or the
// newest of the owner with the most requests if that is more than the new one's owner has. So no owner can fill the queue for the others.
func (q Queue) excess(w *Waiter, limit int) (refused *Waiter) {
	if w.Kind != WaitSlots || limit <= 0 {
		return nil
	}
	waiting, most := 0, map[string]int{}
	for _, other := range q {
		if other.isRequestFor(w.Key) {
			waiting++
			most[other.Owner]++
			if other.ID == w.ID {
				refused = other // else it was served at once
			}
		}
	}
	if waiting <= limit || refused == nil {
		return nil
	}
	for _, other := range q { // the newest of the owner with the most
		isMost := most[other.Owner] >= most[refused.Owner] && most[other.Owner] > most[w.Owner]
		if other.isRequestFor(w.Key) && !other.Priority && isMost {
			refused = other
		}
	}
	return refused
}

// A request for a loaded model may be served before an earlier waiter whose model isn't loaded. So requests for one model are
// served in batches, and there are fewer loads. The lead bounds how much later the request may have come: loadsPerLead times
// the duration of the last load of the waiter's model, within these bounds.
const (
	loadsPerLead = 4
	minLead      = 10 * time.Second
	maxLead      = 2 * time.Minute
)

// leadOf returns how long after a waiter for an unloaded model a request may arrive and still be served before it.
func (st *State) leadOf(key string) time.Duration {
	return cmp.Or(st.lead, min(max(minLead, loadsPerLead*st.Learnt[key].LoadTime), maxLead))
}

// leadEnd returns the end of a waiter's lead: requests that arrived until then may be served before it.
func (st *State) leadEnd(w *Waiter) time.Time { return w.Turn.Add(st.leadOf(w.Key)) }

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
	weight := math.Exp(-gap.Seconds()/paceMemory.Seconds() - 1./paceWaiters)
	p.served, p.took, p.last = p.served*weight+1, time.Duration(float64(p.took)*weight)+gap, now
}

// retryAfter returns in how long half of a model's waiters will have been served at the recent pace, including the time since
// the last one was served. If none has been served yet it is that time alone.
func (st *State) retryAfter(key string, waiting int, now time.Time) time.Duration {
	var p pace
	if known := st.Pace[key]; known != nil {
		p = *known
	}
	for _, w := range st.Waiters {
		if w.isRequestFor(key) { // the first of them
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

// Demand is what a request needs.
type Demand struct {
	Key      string
	Instance string // only this instance; empty: any of the key
	Draft    string // the key of the draft model that the instance must have; empty: none, or that of the Spec
	Adapter  string // the key of an adapter that the instance must have; empty: any will do
	Context  ContextNeed
	Slots    int    // capped at the slots of the instance
	Owner    string // of the request: owners share the queue fairly, and isolated instances give each its own slots
	Spec     *Spec  // how to load the model
	MayLoad  bool   // whether to load the model if it isn't loaded
	Priority bool   // go before requests without priority, each of which is overtaken at most maxOvertakes times

	Prompt       prefix.Chain // by which the slot with the best state is found; nil: any slot
	Conversation string       // the first response of the stored conversation that it belongs to; empty: none
	Unsaved      bool         // the state of its slot is never saved

	Route
}

// Route says where a request may be served. That may be an instance here, or one of a remote, which may be another node of this machine's
// cluster.
type Route struct {
	Here     bool     // only this machine may serve it
	Hops     []string // the ids of the servers that it has passed, the first one first: it isn't sent to one of them again
	Tried    []uint64 // instances of remotes that have failed to answer it, by generation
	Affinity uint64   // by which servers are ranked, alike for all requests of a conversation; 0: any will do

	TTL       *time.Duration // how long another node keeps the model loaded that it loads for the request; nil: as its settings say
	Retention *Retention     // how long another node keeps the model loaded after the request, wherever it was loaded; nil: as before
}

// Retention is what a request says of the instance that answers it: for how long it stays loaded without requests from now on.
type Retention struct {
	TTL       time.Duration // 0: unlimited
	OnlyOwned bool          // only if the owner of the request has loaded it
}

// ContextNeed estimates how many tokens of context a request needs. Only the engine can count a prompt's tokens, so these
// bounds are used to choose an instance. With the zero value, every instance fits.
type ContextNeed struct {
	Likely int // an instance with fewer isn't used while the model has one with more
	Safe   int // an instance with at least as many is preferred
}

// Use is what a request has made of a slot, as far as its answer has told.
type Use struct {
	Slot     int  // these five are set by the lease
	Begun    bool // the engine has begun to answer; else a request may have been sent
	Restored int  // tokens of the state that was restored before; 0: none
	Emptied  bool // a restore has failed, which has emptied the slot
	Saved    int  // tokens of what the slot held before that were saved; 0: nothing was

	Prompt     int           // tokens of the prompt; 0: unknown
	Cached     int           // those of them that the slot had already
	Completion int           // tokens of the answer so far
	PromptTime time.Duration // spent on the other tokens of the prompt
}
