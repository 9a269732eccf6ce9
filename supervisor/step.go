package supervisor

import (
	"time"
)

// Event is something that has happened.
type Event interface{ event() }

type (
	// Asked adds somebody who waits.
	Asked struct{ Waiter Waiter }
	// GaveUp says that a waiter no longer waits. If it has been granted something by then, nothing happens: who gave up
	// has to give that back.
	GaveUp struct{ Waiter uint64 }
	// Returned gives slots back.
	Returned struct {
		Gen   uint64
		Slots int
	}
	// Signalled is what a process says of itself.
	Signalled struct {
		Gen    uint64
		Signal Signal
	}
	// Exited says that a process has ended, with nothing of it left, or couldn't be started.
	Exited struct {
		Gen    uint64
		Reason string
	}
	// Closed ends everything.
	Closed struct{}
)

func (Asked) event()     {}
func (GaveUp) event()    {}
func (Returned) event()  {}
func (Signalled) event() {}
func (Exited) event()    {}
func (Closed) event()    {}

// Effect is something to be done. Effects are comparable.
type Effect interface{ effect() }

type (
	// Spawn starts an instance's process.
	Spawn struct {
		Instance string
		Gen      uint64
	}
	// Stop ends a process.
	Stop struct{ Gen uint64 }
	// Grant gives a waiter what it waits for. Slots are lent until they are Returned.
	Grant struct {
		Waiter, Gen uint64
		Slots       int
		SawLoad     bool
	}
	// Refuse ends a wait in an error.
	Refuse struct {
		Waiter uint64
		Err    Error
	}
)

func (Spawn) effect()  {}
func (Stop) effect()   {}
func (Grant) effect()  {}
func (Refuse) effect() {}

// portAttempts is how often an instance is launched when another program is quicker to take the port chosen for it.
const portAttempts = 3

// Step is the scheduler: it changes the state by what has happened, and says what is to be done. It has no other inputs
// or outputs.
func Step(st *State, ev Event, now time.Time) []Effect {
	s := stepper{st: st, now: now}
	switch ev := ev.(type) {
	case Asked:
		s.asked(ev.Waiter)
	case GaveUp:
		s.refuseIf(Error{Kind: Cancelled, Message: "the caller gave up"}, func(w *Waiter) bool { return w.ID == ev.Waiter })
	case Returned:
		s.returned(ev)
	case Signalled:
		s.signalled(ev)
	case Exited:
		s.exited(ev)
	case Closed:
		s.closed()
	}
	s.serveAll()
	return s.effects
}

type stepper struct {
	st      *State
	now     time.Time
	effects []Effect
}

func (s *stepper) do(e Effect) { s.effects = append(s.effects, e) }

func (s *stepper) asked(w Waiter) {
	switch {
	case s.st.Closing:
		s.do(Refuse{w.ID, errClosing})
		return
	case w.Kind == WaitUnload:
		in := s.st.byID(w.Instance)
		if in == nil {
			s.do(Refuse{w.ID, noInstance(w.Instance)})
			return
		}
		w.Gen = in.Gen
		s.unload(in)
	case w.Kind == WaitLoad:
		in, spawn := s.st.launch(w.Spec, s.now)
		w.Instance = in.ID
		s.do(spawn)
	}
	s.st.Waiters = append(s.st.Waiters, &w)
}

// unload begins to end an instance. A busy one is left to finish what it does.
func (s *stepper) unload(in *Instance) {
	switch {
	case in.Status.IsLeaving():
	case in.InUse > 0:
		in.Status = Draining
	default:
		s.refuseLoaders(in, Error{Kind: LoadFailed, Message: "The model " + in.ID + " was unloaded while it was loading."})
		s.stop(in)
	}
}

func (s *stepper) stop(in *Instance) {
	in.Status = Stopping
	s.do(Stop{in.Gen})
}

func (s *stepper) returned(ev Returned) {
	in := s.st.find(ev.Gen)
	if in == nil {
		return
	}
	in.InUse -= ev.Slots
	if in.Status == Draining && in.InUse == 0 {
		s.stop(in)
	}
}

func (s *stepper) signalled(ev Signalled) {
	in := s.st.find(ev.Gen)
	if in == nil {
		return
	}
	switch sig := ev.Signal; sig.Kind {
	case SignalProgress:
		if in.Status.IsLoading() {
			in.Status = Loading
			in.Progress = max(in.Progress, min(sig.Progress, 1))
		}
	case SignalReady:
		if in.Status.IsLoading() {
			in.Status, in.Progress, in.LoadTime = Ready, 1, s.now.Sub(in.Launched)
		}
	case SignalTrouble:
		if in.Trouble == "" {
			in.Trouble = sig.Text
		}
	case SignalPortTaken:
		in.PortTaken = true
	}
}

func (s *stepper) exited(ev Exited) {
	in := s.st.find(ev.Gen)
	if in == nil {
		return
	}
	if in.Status.IsLoading() && in.PortTaken && in.Attempts+1 < portAttempts && !s.st.Closing {
		s.st.LastGen++
		in.Gen, in.Attempts, in.PortTaken, in.Trouble = s.st.LastGen, in.Attempts+1, false, ""
		s.do(Spawn{in.ID, in.Gen})
		return
	}
	s.st.remove(in)
	if in.Status.IsLoading() {
		err := loadFailed(in, ev.Reason)
		s.refuseLoaders(in, err)
		if key := in.Spec.Model.Key; !s.st.hope(key) {
			s.refuseIf(err, func(w *Waiter) bool { return w.Key == key && (w.Kind == WaitSlots || w.Kind == WaitLoaded) })
		}
	}
}

// refuseLoaders ends the wait of whoever asked for this very instance to be loaded.
func (s *stepper) refuseLoaders(in *Instance, err Error) {
	s.refuseIf(err, func(w *Waiter) bool { return w.Kind == WaitLoad && w.Instance == in.ID })
}

func (s *stepper) closed() {
	s.st.Closing = true
	s.refuseIf(errClosing, func(w *Waiter) bool { return w.Kind != WaitUnload })
	for _, in := range s.st.Instances {
		if in.Status != Stopping {
			s.stop(in)
		}
	}
}

func (s *stepper) refuseIf(err Error, which func(*Waiter) bool) {
	s.filter(func(w *Waiter) bool {
		if which(w) {
			s.do(Refuse{w.ID, err})
			return false
		}
		return true
	})
}

// filter keeps the waiters that keep says yes to, in their order.
func (s *stepper) filter(keep func(*Waiter) bool) {
	kept := s.st.Waiters[:0]
	for _, w := range s.st.Waiters {
		if keep(w) {
			kept = append(kept, w)
		}
	}
	clear(s.st.Waiters[len(kept):])
	s.st.Waiters = kept
}

// serveAll gives every waiter what there is for it, in order of arrival.
func (s *stepper) serveAll() {
	promised := map[*Instance]bool{} // whose slots an earlier waiter waits for
	s.filter(func(w *Waiter) bool {
		switch w.Kind {
		case WaitUnload:
			return s.keepUnloader(w)
		case WaitLoad:
			return s.keepLoader(w)
		default:
			return s.keepUser(w, promised)
		}
	})
}

func (s *stepper) keepUnloader(w *Waiter) bool {
	if s.st.find(w.Gen) != nil {
		return true
	}
	s.do(Grant{Waiter: w.ID})
	return false
}

func (s *stepper) keepLoader(w *Waiter) bool {
	in := s.st.byID(w.Instance)
	if in == nil || in.Status != Ready {
		return true // its failure is told when its process ends
	}
	s.do(Grant{Waiter: w.ID, Gen: in.Gen, SawLoad: true})
	return false
}

// keepUser serves who wants to use a model, or to see it loaded. It launches an instance where there is none.
func (s *stepper) keepUser(w *Waiter, promised map[*Instance]bool) bool {
	var best *Instance
	var hopes []*Instance
	leaving := false
	exact := s.st.byID(w.Instance)
	for _, in := range s.st.Instances {
		if in.Spec.Model.Key != w.Key || (exact != nil && in != exact) {
			continue
		}
		if in.Status.IsLeaving() {
			leaving = true
			continue
		}
		hopes = append(hopes, in)
		w.SawLoad = w.SawLoad || in.Status.IsLoading()
		if in.canServe(w) && (w.Slots == 0 || !promised[in]) && (best == nil || in.InUse < best.InUse) {
			best = in
		}
	}
	switch {
	case best != nil:
		slots := min(w.Slots, best.Spec.Parallel)
		best.InUse += slots
		s.do(Grant{w.ID, best.Gen, slots, w.SawLoad})
		return false
	case len(hopes) > 0 || leaving: // a leaving one has to be gone before its like may take its place
		for _, in := range hopes {
			promised[in] = true
		}
		return true
	case !w.MayLoad:
		s.do(Refuse{w.ID, notLoaded(w.Key)})
		return false
	default:
		in, spawn := s.st.launch(w.Spec, s.now)
		promised[in] = true
		w.SawLoad = true
		s.do(spawn)
		return true
	}
}
