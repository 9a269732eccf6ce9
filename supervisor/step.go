package supervisor

import (
	"slices"
	"time"
)

const (
	// portAttempts is how often an instance is launched when another program is quicker to take the port chosen for it.
	portAttempts = 3
	// maxOvertakes is how many who came later may be served before somebody who waits, since what they want is there
	// and what he wants is not.
	maxOvertakes = 16
)

// Step is the scheduler: it changes the state by what has happened, and says what is to be done. It has no other inputs
// or outputs.
func Step(st *State, ev Event, now time.Time) []Effect {
	s := stepper{st: st, now: now}
	switch ev := ev.(type) {
	case Asked:
		s.asked(ev.Waiter)
	case GaveUp:
		s.refuseIf(errCancelled, func(w *Waiter) bool { return w.ID == ev.Waiter && w.Kind != WaitRestart })
	case Returned:
		s.returned(ev)
	case Signalled:
		s.signalled(ev)
	case Measured:
		s.measured(ev)
	case Condemned:
		s.condemned(ev)
	case Exited:
		s.exited(ev)
	case Configured:
		s.configured(ev)
	case Closed:
		s.closed()
	case Tick: // what is due is seen below
	}
	s.serveAll()
	if asked, ok := ev.(Asked); ok {
		s.boundQueue(asked.Waiter)
	}
	return s.effects
}

type stepper struct {
	st      *State
	now     time.Time
	effects []Effect

	blocked  []*Waiter // those met so far for whose model there is no room yet
	reserved load      // what was freed, or is being freed, for them
}

func (s *stepper) do(e Effect) { s.effects = append(s.effects, e) }

func (s *stepper) asked(w Waiter) {
	switch {
	case s.st.Closing:
		s.do(Refuse{w.ID, errClosing})
		return
	case w.Kind == WaitUnload:
		if !s.askedToUnload(&w) {
			return
		}
	case w.Kind == WaitLoad:
		delete(s.st.Failures, w.Key) // who asks for it by hand may have mended it
	}
	at := len(s.st.Waiters)
	if w.Priority {
		at = s.place(&w)
	}
	s.st.Waiters = slices.Insert(s.st.Waiters, at, &w)
}

// place is where somebody with priority may stand: before those without who wait for the same model, as far as they
// haven't been overtaken too often.
func (s *stepper) place(w *Waiter) int {
	at := len(s.st.Waiters)
	for i, other := range slices.Backward(s.st.Waiters) {
		if other.Key != w.Key {
			continue
		}
		if other.Kind != WaitSlots || other.Priority || other.Overtaken >= maxOvertakes {
			break
		}
		at = i
	}
	for _, other := range s.st.Waiters[at:] {
		other.Overtaken++
	}
	return at
}

// askedToUnload begins to unload. It is false when there is nothing to wait for.
func (s *stepper) askedToUnload(w *Waiter) bool {
	in := s.st.byID(w.Instance)
	if in == nil {
		coming := s.st.restart(func(r *Waiter) bool { return r.Instance == w.Instance })
		if coming == nil {
			s.do(Refuse{w.ID, noInstance(w.Instance)})
			return false
		}
		s.drop(coming)
		s.do(Grant{Waiter: w.ID})
		return false
	}
	if again := s.st.restart(func(r *Waiter) bool { return r.Instance == w.Instance }); again != nil {
		s.drop(again)
	}
	w.Gen = in.Gen
	if in.Status.IsLoading() {
		s.refuseLoaders(in, unloadedWhileLoading(in.ID))
	}
	s.leave(in, ForRequest)
	return true
}

// leave begins to end an instance. A busy one is left to finish what it does.
func (s *stepper) leave(in *Instance, why Reason) {
	switch {
	case in.Status.IsLeaving():
	case in.InUse > 0:
		in.Status, in.Leaving = Draining, why
	default:
		s.stop(in, why)
	}
}

func (s *stepper) stop(in *Instance, why Reason) {
	in.Status, in.Leaving = Stopping, why
	s.do(Stop{in.Gen, why})
}

func (s *stepper) returned(ev Returned) {
	in := s.st.find(ev.Gen)
	if in == nil {
		return
	}
	in.InUse -= ev.Slots
	in.LastUsed = s.now
	delete(s.st.Failures, in.Spec.Model.Key)
	s.st.learnService(in.Spec.Model.Key, ev.Held)
	if in.Status == Draining && in.InUse == 0 {
		s.stop(in, in.Leaving)
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
			in.Status, in.Progress, in.LoadTime, in.LastUsed = Ready, 1, s.now.Sub(in.Launched), s.now
			s.reckon(in)
			s.do(Loaded{in.Gen})
		}
	case SignalTrouble:
		if in.Trouble == "" {
			in.Trouble = sig.Text
		}
	case SignalPortTaken:
		in.PortTaken = true
	case SignalOutOfMemory:
		in.OutOfMemory = true
	case SignalBuffer:
		in.Applied.Buffers += sig.Bytes
	case SignalFlashAttention:
		in.Applied.FlashAttention = sig.Toggle
	}
}

func (s *stepper) measured(ev Measured) {
	if in := s.st.find(ev.Gen); in != nil && in.Status == Ready {
		in.Resident = ev.Resident
		s.reckon(in)
	}
}

// condemned ends a process that hangs. What it is doing is lost anyway.
func (s *stepper) condemned(ev Condemned) {
	in := s.st.find(ev.Gen)
	if in == nil || in.Status == Stopping {
		return
	}
	s.stop(in, ForSilence)
	in.Trouble = ev.Reason
}

func (s *stepper) exited(ev Exited) {
	in := s.st.find(ev.Gen)
	if in == nil {
		return
	}
	switch {
	case s.st.Closing:
		s.st.remove(in)
	case in.Status.IsLoading():
		s.loadFailed(in, ev)
	case in.Status == Ready, in.Leaving == ForSilence:
		s.crashed(in, ev)
	default:
		s.st.remove(in)
	}
}

// configured takes over settings. What an instance is loaded with waits until it is idle; the rest counts at once.
func (s *stepper) configured(ev Configured) {
	s.st.Limits = ev.Limits
	for _, in := range s.st.Instances {
		spec := ev.Specs[in.Gen]
		if spec == nil {
			continue
		}
		if in.Spec.isProcessOf(spec) {
			in.Spec, in.Next = in.Spec.withPolicyOf(spec), nil
		} else {
			in.Next, in.LateGrants = spec, 0
		}
	}
}

// refuseLoaders ends the wait of whoever asked for this very instance to be loaded.
func (s *stepper) refuseLoaders(in *Instance, err Error) {
	s.refuseIf(err, func(w *Waiter) bool { return w.Kind == WaitLoad && w.Instance == in.ID })
}

func (s *stepper) closed() {
	s.st.Closing = true
	s.filter(func(w *Waiter) bool { return w.Kind != WaitRestart })
	s.refuseIf(errClosing, func(w *Waiter) bool { return w.Kind != WaitUnload })
	for _, in := range s.st.Instances {
		if in.Status != Stopping {
			s.stop(in, ForClosing)
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

func (s *stepper) drop(gone *Waiter) { s.filter(func(w *Waiter) bool { return w != gone }) }

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
