package supervisor

import "slices"

// place is where a waiter with priority may stand: before those without that wait for the same model, unless that puts it
// before one that was overtaken too often.
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

// takeTurn moves who has just come forward, so that the owners who wait for a model take turns: its owner's second request
// stands before everybody else's third. The first of each owner is passed by nobody, so each turn serves one of every
// owner's, and none is kept waiting by how many others send. Who waits for other models is passed by no more than before:
// the model's waiters change indexes among themselves.
func (s *stepper) takeTurn(w *Waiter) {
	if w.Kind != WaitSlots || w.Priority || !slices.ContainsFunc(s.st.Waiters, func(o *Waiter) bool { return o.Key == w.Key && o.Owner != w.Owner }) {
		return
	}
	var indexes []int // of the model's waiters who may be passed, and at last of w
	var turns []int   // of them
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

// boundQueue refuses somebody if too many wait already: who has just come, or in its place the newest of the owner that has
// more who wait than the others, and than the newcomer's. So no owner can fill the queue for others.
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
	if waiting <= s.st.Limits.Queue || !isNew { // who has been served already isn't found any more
		return
	}
	refused := w.ID
	most := of[w.Owner]
	for _, other := range s.st.Waiters { // the last of those who have the most
		if other.Kind == WaitSlots && other.Key == w.Key && !other.Priority && of[other.Owner] >= most && of[other.Owner] > of[w.Owner] {
			refused, most = other.ID, of[other.Owner]
		}
	}
	s.refuseIf(queueFull(w.Key, waiting-1, s.st.retryAfter(w.Key, waiting, s.now)), func(o *Waiter) bool { return o.ID == refused && o.Kind == WaitSlots })
	s.sweep()
}
