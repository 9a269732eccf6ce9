package supervisor

import (
	"cmp"
	"slices"
	"time"
)

// A request may be served before a waiter that came earlier if its own model is loaded and the waiter's isn't. So requests
// for one model are served in batches, and loads are fewer. The lead bounds how much later it may have come: loadsPerLead
// times what the last load of the waiter's model took, within these bounds.
const (
	loadsPerLead = 4
	minLead      = 10 * time.Second
	maxLead      = 2 * time.Minute
)

// leadOf is how much later than a waiter for a model that isn't loaded a request may have come that is served before it.
func (st *State) leadOf(key string) time.Duration {
	return cmp.Or(st.lead, min(max(minLead, loadsPerLead*st.Learnt[key].LoadTime), maxLead))
}

// mayPass is until when a request may have come to be served before a waiter whose model isn't loaded.
func (s *stepper) mayPass(w *Waiter) time.Time { return w.Turn.Add(s.st.leadOf(w.Key)) }

// needs adds a load for a waiter to those that are to be decided. A waiter that can use what another has loaded joins it.
func (s *stepper) needs(w *Waiter) {
	if w.uses() && slices.ContainsFunc(s.loads, func(first *Waiter) bool { return first.brings(w) }) {
		return
	}
	s.loads = append(s.loads, w)
	if until := s.mayPass(w); s.horizon.IsZero() || until.Before(s.horizon) {
		s.horizon = until
	}
}

// decideLoads launches what the waiters met so far need, or makes room for it, in their order.
func (s *stepper) decideLoads() {
	open := s.loads[s.decided:]
	s.decided, s.horizon = len(s.loads), time.Time{}
	for _, w := range open {
		if w.Kind == WaitRestart {
			s.restart(w)
		} else {
			s.load(w)
		}
	}
}

// load launches what a waiter needs if there is room.
func (s *stepper) load(w *Waiter) {
	in, err := s.launchFor(w, "")
	switch {
	case err != nil:
		s.do(Refuse{w.ID, *err})
		w.gone, s.refused = true, true
	case in != nil && w.Kind == WaitLoad:
		w.Instance = in.ID
	}
}
