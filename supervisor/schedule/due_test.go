package schedule

import "slices"

// checkDue checks that a step has left nothing undone that could have been done: no event may come for a long time.
func (w *world) checkDue() {
	if w.st.Closing {
		return
	}
	for _, in := range w.st.Instances {
		switch end := in.Expires(); {
		case !in.isIdle() || w.isWanted(in):
		case in.Next != nil:
			w.fail("%s is idle, and still has its old settings", in.ID)
		case !end.IsZero() && !w.now.Before(end):
			w.fail("%s has outlived its time", in.ID)
		case w.isDue(w.st.savesAt(in)):
			w.fail("%s is idle, and isn't saved", in.ID)
		}
	}
	w.checkRelief()
	for i, waiter := range w.st.Waiters {
		switch {
		case waiter.gone:
			w.fail("waiter %+v is still there", *waiter)
		case (waiter.Kind == WaitRestart) != (i < len(w.st.Waiters.restarts())):
			w.fail("waiter %+v stands among others", *waiter)
		}
	}
	if len(w.st.Waiters) > 0 {
		w.checkFirst(w.st.Waiters[0])
	}
}

func (w *world) isWanted(in *Instance) bool {
	for _, waiter := range w.st.Waiters {
		if choice := w.st.choice(waiter); choice.has(in) {
			return true
		}
	}
	return false
}

// checkRelief checks that the limits are respected whenever possible.
func (w *world) checkRelief() {
	var sum load
	var last *Instance
	for _, in := range w.st.Instances {
		if !in.Status.IsLeaving() && !in.IsRemote() {
			sum = sum.plus(in.load())
			if last == nil || in.LastUsed.After(last.LastUsed) {
				last = in
			}
		}
	}
	if w.st.fits(sum, sum) {
		return
	}
	for _, in := range w.st.Instances {
		if in.isIdle() && !in.isKept() && in != last && !w.isWanted(in) && w.st.relieves(in, sum) {
			w.fail("%+v are loaded, and %s could go", sum, in.ID)
		}
	}
}

// checkFirst checks that the first waiter doesn't wait for room that is available.
func (w *world) checkFirst(waiter *Waiter) {
	switch waiter.Kind {
	case WaitUnload:
		return
	case WaitRestart:
		if w.now.Before(waiter.NotBefore) || waiter.Spared || w.st.ByID(waiter.Instance) != nil {
			return
		}
	case WaitLoad:
		if waiter.Instance != "" {
			return
		}
	case WaitSlots, WaitLoaded:
		if f := w.st.Failures[waiter.Key]; f != nil && f.Until.After(w.now) || waiter.RefuseAt.After(w.now) {
			return
		}
		choice := w.st.choice(waiter)
		if slices.ContainsFunc(w.st.Instances, func(in *Instance) bool { return choice.has(in) && in.Away == "" }) {
			return
		}
	}
	s := newStepper(&w.st, w.now)
	plans, err := s.plans(waiter.Spec, waiter.Context)
	if err != nil || w.st.Sampling || w.st.recovering {
		return
	}
	need := plans[0].need
	if w.st.fits(w.st.taken(exists).plus(need), need) {
		w.fail("there is room, but %+v waits for it", *waiter)
	}
}

// checkIdle checks that a waiter doesn't wait beside an idle instance that could serve it. What may be evicted, made smaller or
// unloaded is idle itself, so nobody waits for it.
func (w *world) checkIdle(waiter *Waiter) {
	choice := w.st.choice(waiter)
	for _, in := range w.st.Instances {
		if waiter.Kind != WaitUnload && in.isIdle() && in.book.saving() == 0 && choice.has(in) && in.Away == "" && in.HeldUntil.IsZero() {
			w.fail("waiter %+v waits, though %s is idle", *waiter, in.ID)
		}
	}
}
