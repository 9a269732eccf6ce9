package schedule

import (
	"slices"
	"time"
)

const (
	// portAttempts is how often an instance is launched when other programs take the port chosen for it.
	portAttempts = 3
	// maxOvertakes is how many requests with priority may overtake a waiter.
	maxOvertakes = 16
	// maxLateGrants is how many more requests a busy instance serves after its settings have changed.
	maxLateGrants = 16
)

// Step is the scheduler. It applies an event to the state and returns the effects to execute, in order. It does no I/O and
// reads no clock.
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
	case EndAsked:
		s.endAsked(ev)
	case Exited:
		s.exited(ev)
	case RestartsConfigured:
		s.restartsConfigured(ev)
	case Configured:
		s.configured(ev)
	case Respecified:
		s.respecified(ev)
	case Savable:
		s.savable(ev)
	case Saved:
		s.saved(ev)
	case Forgot:
		s.forgot(ev)
	case Cleared:
		s.dropSaved(false, ev.Match)
	case Placed:
		s.placed(ev)
	case Throttled:
		s.throttled(ev)
	case Sampled:
		s.sampled(ev)
	case Closed:
		s.closed()
	case Tick: // serveAll finds what is due
	}
	s.serveAll()
	if asked, ok := ev.(Asked); ok {
		waiting := len(s.st.Waiters)
		s.boundQueue(asked.Waiter)
		if len(s.st.Waiters) < waiting { // its load may have no other waiter
			s.mark()
			s.expire()
		}
	}
	return s.effects
}

type stepper struct {
	st      *State
	now     time.Time
	effects []Effect

	// These are reset for each round over the waiters.
	loads    []*Waiter // waiters considered so far that need a load, one for each load
	decided  int       // how many of loads were launched or found to have no room
	horizon  time.Time // the latest arrival that may pass all undecided loads; zero: none is undecided
	reserved load      // kept free, or being freed, for loads
	refused  bool      // a load was refused, or queued behind a remote
	behind   []*Spec   // models to be loaded here while remotes answer
}

func (s *stepper) do(e Effect) { s.effects = append(s.effects, e) }

func (s *stepper) asked(w Waiter) {
	w.Since, w.Turn = s.now, s.now
	switch {
	case s.st.Closing:
		s.do(Refuse{w.ID, ErrClosing})
		return
	case w.Kind == WaitUnload:
		if !s.askedToUnload(&w) {
			return
		}
	case w.Kind == WaitLoad:
		if s.st.isChosen(w.Spec.ID) {
			s.do(Refuse{w.ID, idTaken(w.Spec.ID)})
			return
		}
		s.forget(w.Spec) // the user may have repaired it
	default:
		if f := s.st.Failures[w.Key]; f != nil && !f.changed.Equal(w.Spec.Model.Changed) {
			s.forget(w.Spec)
		}
	}
	at := len(s.st.Waiters)
	if w.Priority {
		at = s.priorityIndex(&w)
	}
	s.st.Waiters = slices.Insert(s.st.Waiters, at, &w)
	s.takeTurn(&w)
}

// askedToUnload starts an unload. It returns false if there is nothing to wait for.
func (s *stepper) askedToUnload(w *Waiter) bool {
	in := s.st.ByID(w.Instance)
	if in == nil {
		coming := s.st.Restarting(w.Instance)
		if coming == nil {
			s.do(Refuse{w.ID, UnknownInstance(w.Instance)})
			return false
		}
		coming.gone = true
		s.refuseLoaders(w.Instance, unloadedWhileLoading(w.Instance))
		s.do(Grant{Waiter: w.ID})
		return false
	}
	if again := s.st.Restarting(w.Instance); again != nil {
		again.gone = true
	}
	if in.IsRemote() {
		s.do(Refuse{w.ID, notOurs(in)})
		return false
	}
	w.Gen = in.Gen
	if in.Status.IsLoading() {
		s.refuseLoaders(in.ID, unloadedWhileLoading(in.ID))
	}
	s.leave(in, ForRequest)
	return true
}

// leave drains an instance. One that has no requests and nothing to save is stopped at once.
func (s *stepper) leave(in *Instance, why Reason) {
	switch {
	case in.Status.IsLeaving():
	case in.Status.IsLoading():
		s.stop(in, why)
	default:
		in.Status, in.Leaving = Draining, why
		s.leaveNow(in)
	}
}

// drain stops the instances that nothing holds up any more.
func (s *stepper) drain() {
	for _, in := range s.st.Instances {
		if in.Status == Draining {
			s.leaveNow(in)
		}
	}
}

// leaveNow stops a draining instance unless requests hold it up, or slots that are saved before it stops. Requests hold nothing
// up when the server shuts down.
func (s *stepper) leaveNow(in *Instance) {
	if in.InUse > 0 && in.Leaving != ForClosing {
		return
	}
	if in.SaveBy.IsZero() {
		s.saveAll(in)
	}
	if in.book.saving() == 0 || !s.now.Before(in.SaveBy) {
		s.stop(in, in.Leaving)
	}
}

func (s *stepper) stop(in *Instance, why Reason) {
	in.Status, in.Leaving = Stopping, why
	if !in.Retrying { // else it is being stopped already
		s.do(Stop{in.Gen, why})
	}
}

func (s *stepper) returned(ev Returned) {
	in := s.st.Find(ev.Gen)
	if ev.Answered {
		s.worked(ev.Key, in)
	}
	if in == nil {
		return
	}
	in.InUse -= ev.Slots
	s.giveBack(in, ev)
	in.LastUsed = s.now
}

func (s *stepper) signalled(ev Signalled) {
	in := s.st.Find(ev.Gen)
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
		if in.Status.IsLoading() && !in.Retrying {
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
	case SignalNoDevice:
		s.lose(in)
		in.NoDevice = true
	case SignalBuffer:
		in.Applied.allocated(sig)
	case SignalLayers:
		if in.Applied.AllLayers == 0 { // a draft model's follow
			in.Applied.Layers, in.Applied.AllLayers = sig.Layers, sig.AllLayers
		}
	case SignalReduced:
		in.Applied.Reduced = true
		s.tryWhole(in)
	case SignalFlashAttention:
		in.Applied.FlashAttention = sig.Toggle
	}
}

func (s *stepper) measured(ev Measured) {
	if in := s.st.Find(ev.Gen); in != nil && in.Status == Ready {
		in.Resident = ev.Resident
		s.reckon(in)
	}
}

// condemned stops a process that hangs. Its requests are lost anyway.
func (s *stepper) condemned(ev Condemned) {
	in := s.st.Find(ev.Gen)
	if in == nil || (in.Status != Ready && in.Status != Draining) {
		return
	}
	if in.Status == Ready {
		in.Leaving, in.Trouble = ForSilence, ev.Reason
	}
	in.Status = Stopping // one that was leaving already keeps its reason and isn't restarted
	s.do(Stop{in.Gen, ForSilence})
}

// endAsked unloads an instance once its requests have ended. It isn't restarted automatically: the signal may be from a
// daemon that frees memory.
func (s *stepper) endAsked(ev EndAsked) {
	if in := s.st.Find(ev.Gen); in != nil && in.Status == Ready {
		s.leave(in, ForSignal)
	}
}

func (s *stepper) exited(ev Exited) {
	in := s.st.Find(ev.Gen)
	if in == nil {
		return
	}
	if len(in.OnGPUs) > 0 {
		s.st.FreedAt = s.now
	}
	switch {
	case s.st.Closing:
		s.st.remove(in)
	case in.Status.IsLoading():
		s.loadFailed(in, ev)
	case in.Status == Ready, in.Status == Draining, in.Leaving == ForSilence:
		s.crashed(in, ev)
	default:
		s.st.remove(in)
		if in.Answered {
			delete(s.st.Failures, in.Spec.Model.Key)
		}
	}
}

// configured applies new settings. Those that need a new process wait until the instance is idle, the others take effect at
// once.
func (s *stepper) configured(ev Configured) {
	s.st.Limits, s.st.Lost = ev.Limits, nil
	if ev.Specs == nil { // the administrator may have repaired what failed
		s.st.Failures = nil
	}
	if ev.Limits.SaveAfter <= 0 { // the files are deleted then
		s.dropSaved(true, func(string, string) bool { return true })
	}
	for _, in := range s.st.Instances {
		spec := ev.Specs[in.Gen]
		if spec == nil || in.IsRemote() {
			continue
		}
		if size := spec.sizeOf(in.Spec); size >= 0 {
			in.Spec, in.Full, in.Next = in.Spec.withPolicyOf(spec.smaller(size)), nil, nil
			if size > 0 {
				in.Full = spec
			}
		} else {
			if in.Next == nil {
				in.LateGrants = 0
			}
			in.Next = spec
			if in.Spec.Pinned != spec.Pinned {
				own := *in.Spec
				own.Pinned = spec.Pinned
				in.Spec = &own
			}
		}
		in.stayIfPinned()
	}
}

// stayIfPinned cancels the eviction of an instance that has been pinned meanwhile.
func (in *Instance) stayIfPinned() {
	if in.Spec.Pinned && in.Status == Draining && in.Leaving == ForRoom {
		in.Status, in.Leaving, in.SaveBy = Ready, "", time.Time{}
	}
}

// respecified changes the Specs of an instance.
func (s *stepper) respecified(ev Respecified) {
	in := s.st.Find(ev.Gen)
	if in == nil {
		return
	}
	for _, spec := range []**Spec{&in.Spec, &in.Full, &in.Next} {
		if *spec != nil {
			own := **spec
			ev.Change(&own)
			*spec = &own
		}
	}
	in.stayIfPinned()
}

// refuseLoaders refuses the waiters that loaded this very instance.
func (s *stepper) refuseLoaders(id string, err Error) {
	s.refuseIf(err, func(w *Waiter) bool { return w.Kind == WaitLoad && w.Instance == id })
}

func (s *stepper) closed() {
	s.st.Closing = true
	for _, w := range s.st.Waiters[:s.st.restarts()] {
		w.gone = true
	}
	s.refuseIf(ErrClosing, func(w *Waiter) bool { return w.Kind != WaitUnload })
	s.st.Instances = slices.DeleteFunc(s.st.Instances, (*Instance).IsRemote)
	for _, in := range s.st.Instances {
		switch in.Status {
		case Stopping:
		case Draining:
			in.Leaving = ForClosing
			s.leaveNow(in)
		default:
			s.leave(in, ForClosing)
		}
	}
}

func (s *stepper) refuseIf(err Error, which func(*Waiter) bool) {
	for _, w := range s.st.Waiters {
		if !w.gone && which(w) {
			s.do(Refuse{w.ID, err})
			w.gone = true
		}
	}
}

// sweep removes the waiters whose wait has ended.
func (s *stepper) sweep() {
	s.st.Waiters = slices.DeleteFunc(s.st.Waiters, func(w *Waiter) bool { return w.gone })
}
