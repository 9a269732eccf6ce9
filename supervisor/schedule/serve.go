package schedule

import (
	"slices"
	"time"
)

// patience is how long a request waits for the next attempt at a model that failed, or for a remote that can't be reached. If the
// back-off is longer, the request is refused at once.
const patience = 2 * time.Second

// serveAll serves every waiter that can be served, and stops what is due to stop.
func (s *stepper) serveAll() {
	s.letGo()
	s.st.recovering = false
	s.drain()
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
		if slices.ContainsFunc(s.effects, changesChoices) { // a waiter that needs a longer context doesn't want the short instance once a longer one is coming
			s.mark()
		}
		s.relieve()
		s.yield()
		if at := s.st.samplesAt(); !at.IsZero() && !s.now.Before(at) {
			s.sample(false)
		}
		if s.expire() { // who has waited for that load may use another instance now
			s.mark()
			s.serveInOrder()
		}
		s.saveIdle()
	}
}

// changesChoices reports whether an effect adds or removes an instance, so that waiters may have other choices than before.
func changesChoices(e Effect) bool {
	switch e := e.(type) {
	case Spawn, Stop:
		return true
	case Save:
		return e.Leaving
	default:
		return false
	}
}

// mayGoOn reports whether another round may achieve something, after one in which a wait has ended: after a refused load the
// next waiter's load may be possible, and an instance that is no longer wanted may be restarted.
func (s *stepper) mayGoOn() bool {
	return s.refused || slices.ContainsFunc(s.st.Instances, func(in *Instance) bool { return in.Next != nil })
}

// serveInOrder makes one round over the waiters, in order. A load is decided after every waiter that may pass it was
// considered. It reports whether any wait has ended.
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
	s.startBehind()
	s.grow()
	s.sweep()
	return len(s.st.Waiters) < before || s.refused
}

// serve serves a waiter if possible. It reports whether the waiter still waits.
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

// mark sets wanted for the instances that can serve a waiter, and clears promised.
func (s *stepper) mark() {
	s.st.countCrowd()
	for _, in := range s.st.Instances {
		in.promised, in.awaited, in.wanted = false, false, false
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
	if s.st.Find(w.Gen) != nil {
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
	in := s.st.ByID(w.Instance)
	switch {
	case in == nil && !s.st.isTaken(w.Instance):
		s.do(Refuse{w.ID, UnknownInstance(w.Instance)})
		return false
	case in == nil || in.Status != Ready:
		return true // if the load fails, the waiter is refused when the process exits
	default:
		s.do(Grant{Waiter: w.ID, Gen: in.Gen, SawLoad: true})
		return false
	}
}

// serveUse serves a waiter for slots or for a loaded model. If there is no instance, it asks for a load.
func (s *stepper) serveUse(w *Waiter) bool {
	if w.Instance != "" && !s.st.isTaken(w.Instance) {
		w.Instance = "" // it is gone: any will do, since another may get its name
	}
	best, hope, leaving := s.look(w)
	switch {
	case best != nil:
		s.loadBehind(w, best)
		s.grant(w, best)
		return false
	case hope:
		w.RefuseAt = time.Time{}
		s.promise(w)
		if s.isOnlyRemote(w) && s.mayLoadHere(w) && !s.isSettled(w) {
			s.needs(w) // whichever is first serves it
		}
		return true
	case leaving: // a new one is loaded once it is gone
		return true
	}
	coming := s.st.restart(func(r *Waiter) bool { return r.brings(w) })
	if why, isOut := s.out(w); isOut && (s.st.named(w) != nil || coming == nil && !w.MayLoad) {
		if s.awaitsReturn(w) {
			return true
		}
		s.do(Refuse{w.ID, why})
		return false
	}
	failure := s.st.Failures[w.Key]
	switch {
	case coming == nil && !w.MayLoad && w.Spec.Remote != nil:
		s.do(Refuse{w.ID, notThere(w.Key)})
		return false
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

// look returns the best instance that can serve a waiter now. If there is none, hope says that one will be able to, and
// leaving that one is still leaving.
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
		if in.isOut(s.now) {
			continue
		}
		hope = true
		if in.canServe(w) && (w.Slots == 0 || !in.promised) && !in.awaits(w, s.now) && (best == nil || choice.prefers(in, best)) {
			best = in
		}
	}
	return best, hope, leaving
}

// promise reserves the instances that a waiter can use, so that later waiters don't take its slots. They may take the slots of
// an instance whose free ones it doesn't want.
func (s *stepper) promise(w *Waiter) {
	choice := s.st.choice(w)
	for _, in := range s.st.Instances {
		if !choice.has(in) {
			continue
		}
		if in.canServe(w) && in.awaits(w, s.now) {
			in.awaited = true
		} else {
			in.promised = true
		}
	}
}

func (s *stepper) grant(w *Waiter, in *Instance) {
	slots := min(w.Slots, in.slots())
	in.InUse += slots
	in.lendSlots(slots, w, s.now)
	if in.IsRemote() && !in.isPeer() && len(w.Prompt) > 0 {
		if in.sent == nil {
			in.sent = new(sentPrompts)
		}
		in.sent.add(w.Prompt)
	}
	if s.st.crowd != nil && w.Kind == WaitSlots {
		s.st.crowd[w.Key]--
	}
	in.LastUsed = s.now
	s.st.learnPace(w, s.now)
	if in.Next != nil {
		in.LateGrants++
	}
	s.do(Grant{w.ID, in.Gen, slots, w.Since.Before(in.Launched.Add(in.LoadTime))})
}

// expire stops instances that were idle for their time to live and, with Limits.Abandon, loads without a waiter. It reports whether a load was
// stopped.
func (s *stepper) expire() (stopped bool) {
	for _, in := range s.st.Instances {
		switch end := in.Expires(); {
		case in.wanted:
		case !end.IsZero() && !s.now.Before(end):
			s.leave(in, ForIdleness)
		case s.st.Limits.Abandon && in.Status.IsLoading() && !in.Unasked:
			s.stop(in, ForNobody)
			stopped = true
		}
	}
	return stopped
}
