package supervisor

import (
	"slices"
	"time"
)

// patience is how long a waiter waits for a model that failed to be tried again, rather than be told so.
const patience = 2 * time.Second

// serveAll gives every waiter what there is for it, and ends what is due to end.
func (s *stepper) serveAll() {
	s.sweep()
	s.mark()
	for {
		s.renew()
		if !s.serveInOrder() {
			break
		}
		s.mark()
		if !s.mayGoOn() {
			break
		}
	}
	if !s.st.Closing {
		if slices.ContainsFunc(s.effects, changesChoices) { // where a longer instance is coming, who waits for it doesn't want the shorter
			s.mark()
		}
		s.relieve()
		s.expire()
	}
}

// changesChoices tells whether other instances may be there, or be coming, than when a round began.
func changesChoices(e Effect) bool {
	switch e.(type) {
	case Spawn, Stop:
		return true
	default:
		return false
	}
}

// mayGoOn tells whether another round may lead to something, after one in which a wait has ended: a load that was refused to
// one waiter may be possible for the next, and an instance that is no longer wanted may be started again.
func (s *stepper) mayGoOn() bool {
	return s.refused || slices.ContainsFunc(s.st.Instances, func(in *Instance) bool { return in.Next != nil })
}

// serveInOrder is one round over the waiters, in order. Loads are decided after every waiter that may pass them was looked
// at. It tells whether a wait has ended.
func (s *stepper) serveInOrder() bool {
	s.loads, s.decided, s.horizon, s.reserved, s.refused = nil, 0, time.Time{}, load{}, false
	before := len(s.st.Waiters)
	for _, w := range s.st.Waiters {
		if !s.horizon.IsZero() && w.Turn.After(s.horizon) {
			s.decideLoads()
		}
		if !w.gone && !s.serve(w) {
			w.gone = true
		}
	}
	s.decideLoads()
	s.grow()
	s.sweep()
	return len(s.st.Waiters) < before
}

// keep serves a waiter. It tells whether it still waits.
func (s *stepper) serve(w *Waiter) bool {
	switch w.Kind {
	case WaitUnload:
		return s.serveUnload(w)
	case WaitLoad:
		return s.serveLoad(w)
	case WaitRestart:
		return s.serveRestart(w)
	default:
		return s.serveUse(w)
	}
}

// mark finds the instances that somebody waits for.
func (s *stepper) mark() {
	for _, in := range s.st.Instances {
		in.promised, in.wanted = false, false
	}
	for _, w := range s.st.Waiters {
		if w.gone || w.Kind == WaitUnload {
			continue
		}
		choice := s.st.choice(w)
		for _, in := range s.st.Instances {
			if choice.has(in) {
				in.wanted = true
			}
		}
	}
}

func (s *stepper) serveUnload(w *Waiter) bool {
	if s.st.find(w.Gen) != nil {
		return true
	}
	s.do(Grant{Waiter: w.ID})
	return false
}

func (s *stepper) serveLoad(w *Waiter) bool {
	if w.Instance == "" {
		s.needs(w)
		return true
	}
	in := s.st.byID(w.Instance)
	switch {
	case in == nil && !s.st.isTaken(w.Instance):
		s.do(Refuse{w.ID, noInstance(w.Instance)})
		return false
	case in == nil || in.Status != Ready:
		return true // its failure is told when its process ends
	default:
		s.do(Grant{Waiter: w.ID, Gen: in.Gen, SawLoad: true})
		return false
	}
}

// serveUse serves who wants to use a model, or to see it loaded. Where there is no instance, one is to be loaded.
func (s *stepper) serveUse(w *Waiter) bool {
	if w.Instance != "" && !s.st.isTaken(w.Instance) {
		w.Instance = "" // it is gone: any will do, and its name may become another's
	}
	best, hope, leaving := s.look(w)
	switch {
	case best != nil:
		s.grant(w, best)
		return false
	case hope:
		s.promise(w)
		return true
	case leaving: // it has to be gone before its like may take its place
		return true
	}
	coming := s.st.restart(func(r *Waiter) bool { return r.brings(w) })
	failure := s.st.Failures[w.Key]
	switch {
	case coming == nil && !w.MayLoad:
		s.do(Refuse{w.ID, notLoaded(w.Key)})
		return false
	case failure != nil && failure.Until.Sub(s.now) > patience:
		s.do(Refuse{w.ID, backingOff(w.Key, failure, s.now)})
		return false
	case coming == nil && (failure == nil || !failure.Until.After(s.now)):
		s.needs(w)
	}
	return true
}

// look finds the best instance that can serve a waiter now; else whether one will be able to, or is still leaving.
func (s *stepper) look(w *Waiter) (best *Instance, hope, leaving bool) {
	choice := s.st.choice(w)
	for _, in := range s.st.Instances {
		if !choice.has(in) {
			continue
		}
		if in.Status.IsLeaving() {
			leaving = true
			continue
		}
		hope = true
		if in.canServe(w) && (w.Slots == 0 || !in.promised) && (best == nil || choice.prefers(in, best)) {
			best = in
		}
	}
	return best, hope, leaving
}

// promise keeps later waiters from taking what an earlier one waits for.
func (s *stepper) promise(w *Waiter) {
	choice := s.st.choice(w)
	for _, in := range s.st.Instances {
		if choice.has(in) {
			in.promised = true
		}
	}
}

func (s *stepper) grant(w *Waiter, in *Instance) {
	slots := min(w.Slots, in.Spec.Parallel)
	in.InUse += slots
	in.lendSlots(slots, w)
	in.LastUsed = s.now
	s.st.learnPace(w, s.now)
	if in.Next != nil {
		in.LateGrants++
	}
	s.do(Grant{w.ID, in.Gen, slots, w.Since.Before(in.Launched.Add(in.LoadTime))})
}

// expire ends what nobody has used for its time to live, and the loads that nobody waits for if they are to end.
func (s *stepper) expire() {
	for _, in := range s.st.Instances {
		switch end := in.Expires(); {
		case in.wanted:
		case !end.IsZero() && !s.now.Before(end):
			s.stop(in, ForIdleness)
		case s.st.Limits.Abandon && in.Status.IsLoading() && !in.Unasked:
			s.stop(in, ForNobody)
		}
	}
}
