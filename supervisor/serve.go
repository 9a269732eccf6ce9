package supervisor

import (
	"slices"
	"time"
)

// patience is how long a waiter waits for a model that failed to be tried again, rather than be told so.
const patience = 2 * time.Second

// serveAll gives every waiter what there is for it, and ends what is due to end.
func (s *stepper) serveAll() {
	s.mark()
	s.renew()
	for {
		before := len(s.st.Waiters)
		s.serveInOrder()
		if len(s.blocked) == 0 || len(s.st.Waiters) == before {
			break
		}
		s.mark() // what somebody got to see loaded, without using it, is free to make room now
	}
	if !s.st.Closing {
		s.relieve()
		s.expire()
	}
}

// serveInOrder is one round over the waiters, in order of arrival.
func (s *stepper) serveInOrder() {
	s.blocked, s.reserved = nil, load{}
	s.filter(func(w *Waiter) bool {
		switch w.Kind {
		case WaitUnload:
			return s.keepUnloader(w)
		case WaitLoad:
			return s.keepLoader(w)
		case WaitRestart:
			return s.keepRestart(w)
		default:
			return s.keepUser(w)
		}
	})
}

// mark finds the instances that somebody waits for.
func (s *stepper) mark() {
	for _, in := range s.st.Instances {
		in.promised, in.wanted = false, false
	}
	for _, w := range s.st.Waiters {
		exact := s.st.byID(w.Instance)
		for _, in := range s.st.Instances {
			if in == exact || (exact == nil && w.uses() && in.matches(w)) {
				in.wanted = in.wanted || w.Kind != WaitUnload
			}
		}
	}
}

// renew starts the instances with changed settings again that are idle. One that is always busy is given to no more than
// maxOvertakes requests with the old ones.
func (s *stepper) renew() {
	for _, in := range s.st.Instances {
		if in.Next == nil || !in.isIdle() || (in.wanted && in.LateGrants < maxOvertakes) {
			continue
		}
		s.stop(in, ForSettings)
		s.again(in.ID, in.Next, s.now)
	}
}

// again has an instance started again, before anything else is.
func (s *stepper) again(id string, spec *Spec, at time.Time) *Waiter {
	w := &Waiter{Kind: WaitRestart, Key: spec.Model.Key, Instance: id, Spec: spec, NotBefore: at}
	s.st.Waiters = slices.Insert(s.st.Waiters, 0, w)
	return w
}

func (s *stepper) keepUnloader(w *Waiter) bool {
	if s.st.find(w.Gen) != nil {
		return true
	}
	s.do(Grant{Waiter: w.ID})
	return false
}

func (s *stepper) keepLoader(w *Waiter) bool {
	if w.Instance == "" {
		in, err := s.launchFor(w, "")
		if err != nil {
			s.do(Refuse{w.ID, *err})
			return false
		}
		if in != nil {
			w.Instance = in.ID
		}
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

func (s *stepper) keepRestart(w *Waiter) bool {
	if s.now.Before(w.NotBefore) || s.st.byID(w.Instance) != nil {
		return true
	}
	if w.Spared && slices.ContainsFunc(s.st.Instances, func(in *Instance) bool { return in.Status.IsLeaving() }) {
		return true // the memory that they hold is what it lacked
	}
	in, err := s.launchFor(w, w.Instance)
	if err != nil {
		return false // the settings no longer leave room for it; who asks for it is told
	}
	if in == nil {
		return true
	}
	in.Unasked, in.Spared = true, w.Spared
	return false
}

// keepUser serves who wants to use a model, or to see it loaded. It launches an instance where there is none.
func (s *stepper) keepUser(w *Waiter) bool {
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
	coming := s.st.restart(func(r *Waiter) bool { return r.Key == w.Key && (w.Draft == "" || w.Draft == r.Spec.draft()) })
	failure := s.st.Failures[w.Key]
	if failure != nil && !failure.changed.Equal(w.Spec.Model.Changed) {
		failure = nil
	}
	switch {
	case coming == nil && !w.MayLoad:
		s.do(Refuse{w.ID, notLoaded(w.Key)})
		return false
	case failure != nil && failure.Until.Sub(s.now) > patience:
		s.do(Refuse{w.ID, backingOff(w.Key, failure, s.now)})
		return false
	case coming != nil, failure != nil && failure.Until.After(s.now):
		w.SawLoad = true
		return true
	}
	in, err := s.launchFor(w, "")
	if err != nil {
		s.do(Refuse{w.ID, *err})
		return false
	}
	if in != nil {
		in.promised = true
		w.SawLoad = true
	}
	return true
}

// look finds the least busy instance that can serve a waiter now; else whether one will be able to, or is still leaving.
func (s *stepper) look(w *Waiter) (best *Instance, hope, leaving bool) {
	exact := s.st.byID(w.Instance)
	for _, in := range s.st.Instances {
		if in != exact && (exact != nil || !in.matches(w)) {
			continue
		}
		if in.Status.IsLeaving() {
			leaving = true
			continue
		}
		hope = true
		w.SawLoad = w.SawLoad || in.Status.IsLoading()
		if in.canServe(w) && (w.Slots == 0 || !in.promised) && (best == nil || in.InUse < best.InUse) {
			best = in
		}
	}
	return best, hope, leaving
}

// promise keeps later waiters from taking what an earlier one waits for.
func (s *stepper) promise(w *Waiter) {
	exact := s.st.byID(w.Instance)
	for _, in := range s.st.Instances {
		if in == exact || (exact == nil && in.matches(w)) {
			in.promised = true
		}
	}
}

func (s *stepper) grant(w *Waiter, in *Instance) {
	slots := min(w.Slots, in.Spec.Parallel)
	in.InUse += slots
	in.LastUsed = s.now
	if in.Next != nil {
		in.LateGrants++
	}
	s.overtake()
	s.do(Grant{w.ID, in.Gen, slots, w.SawLoad})
}

// overtake counts that somebody was served before those for whose model there is no room yet.
func (s *stepper) overtake() {
	for _, w := range s.blocked {
		w.Overtaken++
	}
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

// boundQueue refuses who has just come if too many wait already.
func (s *stepper) boundQueue(w Waiter) {
	if w.Kind != WaitSlots || s.st.Limits.Queue <= 0 {
		return
	}
	waiting, isAmong := 0, false
	for _, other := range s.st.Waiters {
		if other.Kind == WaitSlots && other.Key == w.Key {
			waiting++
			isAmong = isAmong || other.ID == w.ID
		}
	}
	if isAmong && waiting > s.st.Limits.Queue {
		s.refuseIf(queueFull(w.Key, waiting-1, s.st.retryAfter(w.Key, waiting)), func(o *Waiter) bool { return o.ID == w.ID && o.Kind == WaitSlots })
	}
}
