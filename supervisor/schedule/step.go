// Package schedule decides which models are loaded, which request gets which slots, and what leaves for it. It does no I/O, starts
// no goroutine and reads no clock, and imports nothing that could.
//
// A [State] is all that it knows. [Step] applies an [Event] to it, something that has happened, and returns the consequences as [Effect]
// values in order. Whoever owns the State carries them out; their results come back as events. Time is an event, too: [State.Deadline] says
// when the next [Tick] is due. So every schedule can be tested as a script, without a process and without a clock.
package schedule

import (
	"slices"
	"time"
)

// maxLateGrants is how many more requests a busy instance serves after its settings have changed.
const maxLateGrants = 16

// Step is the scheduler. It applies an event to the state and returns the effects to execute, in order. It does no I/O and reads no clock.
func Step(st *State, ev Event, now time.Time) []Effect {
	s := newStepper(st, now)
	ev.apply(s)
	s.serveAll()
	if asked, ok := ev.(Asked); ok {
		if refused := st.Waiters.excess(&asked.Waiter, st.Limits.Queue); refused != nil {
			key, waiting := asked.Waiter.Key, st.Waiters.waiting(asked.Waiter.Key)
			s.do(Refuse{refused.ID, queueFull(key, waiting-1, st.retryAfter(key, waiting, now))})
			refused.gone = true
			st.Waiters.removeGone()
			s.markWanted()
			s.expire() // what it alone waited for
		}
	}
	return s.effects
}

// stepper is one Step.
type stepper struct {
	planner
	effects []Effect

	// These are reset for each round over the waiters.
	loads   []*Waiter // waiters considered so far that need a load, one for each load
	decided int       // how many of loads were launched or found to have no room
	horizon time.Time // the latest arrival that may pass all undecided loads; zero: none is undecided
	refused bool      // a load was refused, or queued behind a remote
	behind  []*Spec   // models to be loaded here while remotes answer
}

func newStepper(st *State, now time.Time) *stepper {
	return &stepper{planner: planner{st: st, now: now}}
}

func (s *stepper) do(e Effect) { s.effects = append(s.effects, e) }

// serveAll serves every waiter that can be served, and stops what is due to stop.
func (s *stepper) serveAll() {
	s.st.recovering = false
	for _, in := range s.st.Instances {
		if !in.HeldUntil.IsZero() && !s.now.Before(in.HeldUntil) { // its remote takes all requests again
			in.Held, in.HeldUntil, in.HeldWhy = 0, time.Time{}, ""
		}
		if in.Status == Draining {
			s.leaveNow(in)
		}
	}
	s.st.Waiters.removeGone()
	s.markWanted()
	for {
		for _, in := range s.st.Instances { // a busy one serves maxLateGrants more requests with the old settings, then drains
			if in.Next != nil && in.isIdle() && (!in.wanted || in.LateGrants >= maxLateGrants) {
				s.leave(in, ForSettings)
				s.again(in.ID, in.Next, s.now)
			}
		}
		if !s.serveInOrder() {
			break
		}
		s.markWanted()
		// Another round may achieve something: after a refused load the next waiter's may be possible, and an instance that is no longer
		// wanted may be restarted.
		if !s.refused && !slices.ContainsFunc(s.st.Instances, func(in *Instance) bool { return in.Next != nil }) {
			break
		}
	}
	if s.st.Closing {
		return
	}
	// a waiter that needs a longer context doesn't want the short instance once a longer one is coming
	if slices.ContainsFunc(s.effects, changesChoices) {
		s.markWanted()
	}
	s.evictOverBudget()
	for in := s.st.yielding(); in != nil && !s.now.Before(in.LastUsed.Add(yieldAfter)); in = s.st.yielding() {
		s.leave(in, ForOthers)
	}
	if at := s.st.samplesAt(); !at.IsZero() && !s.now.Before(at) {
		s.sample(false)
	}
	s.expire()
	for _, in := range s.st.Instances { // one slot at a time for each instance
		if at := s.st.savesAt(in); !at.IsZero() && !s.now.Before(at) {
			s.save(in, in.book.worthSaving(s.st.Limits.SaveTokens)[0], false)
		}
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

// markWanted sets wanted for the instances that can serve a waiter, and clears promised and awaited.
func (s *stepper) markWanted() {
	if s.st.Limits.Node != "" {
		s.st.crowd = map[string]int{}
		for _, w := range s.st.Waiters {
			if !w.gone && w.Kind == WaitSlots {
				s.st.crowd[w.Key]++
			}
		}
	}
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

// expire stops instances that were idle for their time to live.
func (s *stepper) expire() {
	for _, in := range s.st.Instances {
		if end := in.Expires(); !in.wanted && !end.IsZero() && !s.now.Before(end) {
			s.leave(in, ForIdleness)
		}
	}
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

// leaveNow stops a draining instance unless requests hold it up, or slots that are saved before it stops. Requests hold nothing
// up when the server shuts down.
func (s *stepper) leaveNow(in *Instance) {
	if in.InUse > 0 && in.Leaving != ForClosing {
		return
	}
	if in.SaveBy.IsZero() && s.st.saves(in) {
		for _, id := range in.book.worthSaving(s.st.Limits.SaveTokens) { // not those of leases that have not been returned
			s.save(in, id, true)
		}
	}
	if in.SaveBy.IsZero() && in.book.saving() > 0 {
		in.SaveBy = s.now.Add(SaveWithin)
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

// refuseLoaders refuses the waiters that loaded this very instance.
func (s *stepper) refuseLoaders(id string, err Error) {
	s.refuseIf(err, func(w *Waiter) bool { return w.Kind == WaitLoad && w.Instance == id })
}

func (s *stepper) refuseIf(err Error, which func(*Waiter) bool) {
	for _, w := range s.st.Waiters {
		if !w.gone && which(w) {
			s.do(Refuse{w.ID, err})
			w.gone = true
		}
	}
}
