package schedule

import (
	"cmp"
	"slices"
	"time"
)

// patience is how long a request waits for the next attempt at a model that failed, or for a remote that can't be reached. If the
// back-off is longer, the request is refused at once.
const patience = 2 * time.Second

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
	for _, spec := range s.behind {
		s.again(s.st.freeID(spec.Model.Key), spec, s.now)
		s.refused = true
	}
	s.behind = nil
	s.restoreFullSize()
	s.st.Waiters.removeGone()
	return len(s.st.Waiters) < before || s.refused
}

// serve serves a waiter if possible. It reports whether the waiter still waits.
func (s *stepper) serve(w *Waiter) bool {
	switch w.Kind {
	case WaitUnload:
		if s.st.Find(w.Gen) != nil {
			return true
		}
		s.do(Grant{Waiter: w.ID})
		return false
	case WaitLoad:
		return s.serveLoad(w)
	case WaitRestart:
		if !s.now.Before(w.NotBefore) {
			s.needs(w)
		}
		return true
	default:
		return s.serveUse(w)
	}
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

// serveUse serves a waiter for slots or for a loaded model. These are the decisions, in order:
//
//  1. It names an instance that is gone: any of the model will do, since another may get the name.
//  2. An instance has the slots free, and no earlier waiter reserves them: it gets the best one (choice.prefers). If that is a remote's,
//     and this machine comes before the remote, the model is loaded here meanwhile, for later requests.
//  3. An instance will have them: it waits, and reserves what it can use. If only remotes have the model, it is loaded here as well,
//     unless enough nodes of the cluster have it; whichever is first serves it.
//  4. An instance leaves that could have served it: it waits, and the next one is loaded once that is gone.
//  5. All instances that it may use are out, and nothing is restarted or may be loaded: it waits for a remote's return, but only for
//     patience, and is refused.
//  6. The model may not be loaded, and no restart is due: it is refused.
//  7. The model has failed and is left alone for longer than patience: it is refused.
//  8. Nothing delays the load: it asks for one, which is decided after those who may pass it (decideLoads).
//  9. Otherwise a restart is due, or the back-off is over soon: it waits.
func (s *stepper) serveUse(w *Waiter) bool {
	if w.Instance != "" && !s.st.isTaken(w.Instance) {
		w.Instance = ""
	}
	best, hope, leaving := s.look(w)
	switch {
	case best != nil:
		if best.Spec.place() > 0 && s.mayLoadHere(w) && !slices.ContainsFunc(s.behind,
			func(spec *Spec) bool { return spec.Model.Key == w.Key }) {
			s.behind = append(s.behind, w.Spec)
		}
		s.grant(w, best)
		return false
	case hope:
		w.RefuseAt = time.Time{}
		if s.promise(w) && s.mayLoadHere(w) {
			s.needs(w)
		}
		return true
	case leaving:
		return true
	}
	coming := s.st.Waiters.restart(func(r *Waiter) bool { return r.brings(w) })
	failure := s.st.Failures[w.Key]
	held, away := s.st.out(w)
	switch {
	case (held != nil || away != nil) && (s.st.named(w) != nil || coming == nil && !w.MayLoad):
		if away != nil && w.RefuseAt.IsZero() {
			w.RefuseAt = s.now.Add(patience)
		}
		switch {
		case away != nil && s.now.Before(w.RefuseAt): // it may be back in a moment
			return true
		case held != nil:
			s.do(Refuse{w.ID, heldBack(held, s.now)})
		default:
			s.do(Refuse{w.ID, unreachable(away)})
		}
		return false
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
		if in.Away != "" || !in.HeldUntil.IsZero() && in.slots() == 0 && in.HeldUntil.Sub(s.now) > patience {
			continue // its remote can't be reached, or takes nothing for some time
		}
		hope = true
		if in.canServe(w) && (w.Slots == 0 || !in.promised) && !in.awaits(w, s.now) && (best == nil || choice.prefers(in, best)) {
			best = in
		}
	}
	return best, hope, leaving
}

// promise reserves the instances that a waiter can use, so that later waiters don't take its slots. They may take the slots of an instance
// whose free ones it doesn't want. It reports whether all of them are remotes', and no further node of the cluster has to load the model.
func (s *stepper) promise(w *Waiter) (isOnlyRemote bool) {
	choice := s.st.choice(w)
	isOnlyRemote = !choice.settled
	for _, in := range s.st.Instances {
		if !choice.has(in) {
			continue
		}
		isOnlyRemote = isOnlyRemote && (in.IsRemote() || in.Status.IsLeaving())
		if in.canServe(w) && in.awaits(w, s.now) {
			in.awaited = true
		} else {
			in.promised = true
		}
	}
	return isOnlyRemote
}

func (s *stepper) grant(w *Waiter, in *Instance) {
	slots := min(w.Slots, in.slots())
	in.InUse += slots
	in.lendSlots(slots, w, s.now)
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

// out returns the first remote's instance that a waiter could use if it took requests, and the first that it could use if it were
// reachable.
func (st *State) out(w *Waiter) (held, away *Instance) {
	choice := st.choice(w)
	for _, in := range st.Instances {
		switch {
		case !in.IsRemote() || !choice.has(in):
		case in.Away != "":
			away = cmp.Or(away, in)
		default:
			held = cmp.Or(held, in)
		}
	}
	return held, away
}

// mayLoadHere reports whether a waiter that remotes can serve may have its model loaded on this machine, which has no instance of it yet.
func (s *stepper) mayLoadHere(w *Waiter) bool {
	if !w.MayLoad || w.Kind != WaitSlots || w.Instance != "" {
		return false
	}
	if f := s.st.Failures[w.Key]; f != nil && f.Until.After(s.now) {
		return false
	}
	isHere := func(in *Instance) bool { return !in.IsRemote() && in.matches(w) }
	if slices.ContainsFunc(s.st.Instances, isHere) || s.st.Waiters.restart(func(r *Waiter) bool { return r.brings(w) }) != nil {
		return false
	}
	_, err := s.plans(w.Spec, w.Context)
	return err == nil
}

// needs queues a load for a waiter, to be decided in this round. A waiter that can use the load of an earlier one joins that.
func (s *stepper) needs(w *Waiter) {
	if w.uses() && slices.ContainsFunc(s.loads, func(first *Waiter) bool { return first.brings(w) }) {
		return
	}
	s.loads = append(s.loads, w)
	if until := s.st.leadEnd(w); s.horizon.IsZero() || until.Before(s.horizon) {
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
			continue
		}
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
}
