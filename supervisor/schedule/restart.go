package schedule

import (
	"slices"
	"time"
)

// renew restarts idle instances whose settings have changed. One that is always busy serves maxLateGrants more requests with
// the old settings, then drains.
func (s *stepper) renew() {
	for _, in := range s.st.Instances {
		if in.Next == nil || !in.isIdle() || (in.wanted && in.LateGrants < maxLateGrants) {
			continue
		}
		s.leave(in, ForSettings)
		s.again(in.ID, in.Next, s.now)
	}
}

// again queues a restart of an instance, before all waiters.
func (s *stepper) again(id string, spec *Spec, at time.Time) *Waiter {
	w := &Waiter{Kind: WaitRestart, Turn: at, NotBefore: at, Unasked: true, Demand: Demand{Key: spec.Model.Key, Instance: id, Spec: spec}}
	s.st.Waiters = slices.Insert(s.st.Waiters, s.st.restarts(), w)
	return w
}

func (s *stepper) serveRestart(w *Waiter) bool {
	if !s.now.Before(w.NotBefore) {
		s.needs(w)
	}
	return true
}

// restart restarts an instance if there is room.
func (s *stepper) restart(w *Waiter) {
	// After running out of memory, wait until the leaving instances have freed theirs.
	if s.st.ByID(w.Instance) != nil || (w.Spared && slices.ContainsFunc(s.st.Instances, isLeaving)) {
		if plans, err := s.plans(w.Spec, w.Context); err == nil {
			s.reserved = s.reserved.plus(plans[0].need)
		}
		return
	}
	in, err := s.launchFor(w, w.Instance)
	switch {
	case err != nil: // the settings no longer leave room for it; its loaders are refused, too
		s.refuseLoaders(w.Instance, *err)
		w.gone, s.refused = true, true
	case in != nil:
		in.Unasked, in.Spared = w.Unasked, w.Spared
		if w.Full != nil {
			in.Full = w.Full
		}
		w.gone = true
	}
}

// restartsConfigured gives new Specs to instances that wait for their restart. The cause of a delay may be gone with the old one.
func (s *stepper) restartsConfigured(ev RestartsConfigured) {
	for _, w := range s.st.Waiters[:s.st.restarts()] {
		spec := ev.Specs[w.Instance]
		if spec == nil || w.gone || spec.Model.Key != w.Key {
			continue
		}
		w.Spec, w.Full = spec, nil
		if w.NotBefore.After(s.now) {
			w.NotBefore = s.now
		}
	}
}
