package schedule

import (
	"cmp"
	"slices"
	"time"
)

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

// mayPass returns the end of a waiter's lead: requests that arrived until then may be served before it.
func (s *stepper) mayPass(w *Waiter) time.Time { return w.Turn.Add(s.st.leadOf(w.Key)) }

// needs queues a load for a waiter, to be decided in this round. A waiter that can use the load of an earlier one joins that.
func (s *stepper) needs(w *Waiter) {
	if w.uses() && slices.ContainsFunc(s.loads, func(first *Waiter) bool { return first.brings(w) }) {
		return
	}
	s.loads = append(s.loads, w)
	if until := s.mayPass(w); s.horizon.IsZero() || until.Before(s.horizon) {
		s.horizon = until
	}
}

// decideLoads launches the loads queued so far, or makes room for them, in order.
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

// load launches the model that a waiter needs if there is room.
func (s *stepper) load(w *Waiter) {
	id := ""
	if w.Kind == WaitLoad {
		id = w.Spec.ID
	}
	in, err := s.launchFor(w, id)
	switch {
	case err != nil:
		s.do(Refuse{w.ID, *err})
		w.gone, s.refused = true, true
	case in != nil && w.Kind == WaitLoad:
		w.Instance = in.ID
	}
}
