package schedule

import "slices"

// priorityIndex returns the position in the queue for a waiter with priority: before waiters for the same model without
// priority, unless it would overtake one that was overtaken maxOvertakes times.
func (s *stepper) priorityIndex(w *Waiter) int {
	at := len(s.st.Waiters)
	for i := at - 1; i >= 0; i-- {
		other := s.st.Waiters[i]
		if other.Overtaken >= maxOvertakes || (other.Key == w.Key && (other.Kind != WaitSlots || other.Priority)) {
			break
		}
		if other.Key == w.Key {
			at = i
		}
	}
	for _, other := range s.st.Waiters[at:] {
		other.Overtaken++
	}
	if at < len(s.st.Waiters) {
		w.Turn = s.st.Waiters[at].Turn
	}
	return at
}

// takeTurn moves a new waiter forward so that the owners that wait for a model take turns: an owner's second request goes
// before any other owner's third. The first request of an owner is never overtaken, so each turn serves one request of each
// owner, however many the others send. Waiters for other models are unaffected: the model's waiters only permute the
// positions that they hold.
func (s *stepper) takeTurn(w *Waiter) {
	if w.Kind != WaitSlots || w.Priority || !slices.ContainsFunc(s.st.Waiters, func(o *Waiter) bool { return o.Key == w.Key && o.Owner != w.Owner }) {
		return
	}
	var indexes []int // in the queue, of the model's waiters without priority; the last is w's
	var turns []int   // of those waiters
	turn := map[string]int{}
	for i, other := range s.st.Waiters {
		if other.gone || other.Kind != WaitSlots || other.Key != w.Key {
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
		before := s.st.Waiters[indexes[i-1]]
		s.st.Waiters[indexes[i]] = before
		before.Turn, w.Turn = w.Turn, before.Turn
	}
	s.st.Waiters[indexes[at]] = w
}

// boundQueue refuses a request if the queue is too long: the new one, or the newest of the owner with the most requests if
// that is more than the new one's owner has. So no owner can fill the queue for the others.
func (s *stepper) boundQueue(w Waiter) {
	if w.Kind != WaitSlots || s.st.Limits.Queue <= 0 {
		return
	}
	waiting, isNew := 0, false
	of := map[string]int{}
	for _, other := range s.st.Waiters {
		if other.Kind == WaitSlots && other.Key == w.Key {
			waiting++
			of[other.Owner]++
			isNew = isNew || other.ID == w.ID
		}
	}
	if waiting <= s.st.Limits.Queue || !isNew { // a request that was served at once is no longer queued
		return
	}
	refused := w.ID
	most := of[w.Owner]
	for _, other := range s.st.Waiters { // the newest of the owner with the most
		if other.Kind == WaitSlots && other.Key == w.Key && !other.Priority && of[other.Owner] >= most && of[other.Owner] > of[w.Owner] {
			refused, most = other.ID, of[other.Owner]
		}
	}
	s.refuseIf(queueFull(w.Key, waiting-1, s.st.retryAfter(w.Key, waiting, s.now)), func(o *Waiter) bool { return o.ID == refused && o.Kind == WaitSlots })
	s.sweep()
}
