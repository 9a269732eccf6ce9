package schedule

import "time"

const (
	// The first freeFailures failures in a row are retried at once. After the next, the model isn't loaded for firstDelay;
	// each further failure makes that four times as long, up to maxDelay.
	freeFailures = 2
	firstDelay   = time.Second
	maxDelay     = time.Minute
	// forgetAfter is how long a failure counts.
	forgetAfter = 10 * time.Minute
)

// loadFailed handles the exit of a process that was loading.
func (s *stepper) loadFailed(in *Instance, ev Exited) {
	if in.PortTaken && !in.Retrying && in.Attempts+1 < portAttempts {
		s.st.LastGen++
		in.Gen, in.Attempts, in.PortTaken, in.Savable, in.Trouble, in.Applied = s.st.LastGen, in.Attempts+1, false, false, "", Applied{}
		s.do(Spawn{in.ID, in.Gen})
		return
	}
	s.st.remove(in)
	if in.NoDevice && len(in.On.Devices) > 0 { // it is loaded on what is left
		s.again(in.ID, in.Spec, s.now).Unasked = in.Unasked
		return
	}
	hadNoMemory := in.OutOfMemory || ev.Killed
	if hadNoMemory && !in.Spared {
		s.mark()
		for _, other := range s.st.Instances {
			if other.isIdle() && !other.wanted && !other.isKept() {
				s.leave(other, ForRoom)
			}
		}
		again := s.again(in.ID, in.Spec, s.now)
		again.Spared, again.Unasked = true, in.Unasked
		return
	}
	err := noFiles(ev.NoFiles)
	var until time.Time
	if ev.NoFiles != "" {
		until = s.postpone(in.Spec, ev.NoFiles)
	} else {
		err = loadFailed(in, ev.Reason, hadNoMemory)
		until = s.failed(in.Spec, err.Message).Until
	}
	s.refuseLoaders(in.ID, err)
	if in.Unasked && in.Spec.AutoRestart {
		s.again(in.ID, in.Spec, until)
	}
	s.refuseIf(err, func(w *Waiter) bool {
		if !w.uses() || !in.matches(w) {
			return false
		}
		_, hope, leaving := s.look(w)
		return !hope && !leaving
	})
}

// crashed handles the unexpected exit of a process that was ready. It is restarted with AutoRestart, and otherwise loaded by
// the next request. A crash during requests isn't counted as a failure of the model, since a request may have caused it and
// others must not be refused for that.
func (s *stepper) crashed(in *Instance, ev Exited) {
	if ev.OutOfMemory {
		s.ranOut(in)
	}
	s.st.remove(in)
	reason := ev.Reason
	if in.Leaving == ForSilence {
		reason = in.Trouble
	}
	s.do(Crashed{in.ID, in.Spec.Model.Key, reason})
	at := s.now
	if in.InUse == 0 && in.Leaving != ForSilence {
		failure := s.failed(in.Spec, "its engine ended unexpectedly: "+reason)
		failure.Told = "its engine ended unexpectedly" // its output may quote other clients' requests
		at = failure.Until
	} else if f := s.st.Failures[in.Spec.Model.Key]; f != nil && f.Until.After(at) {
		at = f.Until
	}
	if spec := in.nextSpec(); spec.AutoRestart && in.Status != Draining {
		s.again(in.ID, spec, at)
	}
}

// worked clears the failures of a model that has answered a request. If its process has exited since, that failure remains.
func (s *stepper) worked(key string, in *Instance) {
	if in != nil && in.IsRemote() {
		return
	}
	if in != nil {
		in.Answered = true
		delete(s.st.Failures, key)
		return
	}
	if f := s.st.Failures[key]; f != nil {
		f.Count, f.Until = 1, s.now
	}
}

// forget clears the failures of a model. Its pending restarts are due at once, with the current file.
func (s *stepper) forget(spec *Spec) {
	delete(s.st.Failures, spec.Model.Key)
	for _, w := range s.st.Waiters[:s.st.restarts()] {
		if w.Key != spec.Model.Key || !w.NotBefore.After(s.now) {
			continue
		}
		again := *w.Spec
		again.Model = spec.Model
		w.Spec, w.NotBefore = &again, s.now
	}
}

// nextSpec returns the Spec for the next load of an instance.
func (in *Instance) nextSpec() *Spec {
	if in.Next != nil {
		return in.Next
	}
	return in.fullSpec()
}

// failed records a failure and sets the back-off.
func (s *stepper) failed(spec *Spec, message string) *Failure {
	key := spec.Model.Key
	f := s.st.Failures[key]
	if f == nil || s.now.Sub(f.At) > forgetAfter || !f.changed.Equal(spec.Model.Changed) {
		f = &Failure{changed: spec.Model.Changed}
	}
	f.Count, f.At, f.Message, f.Told, f.Until = f.Count+1, s.now, message, "", s.now
	if f.Count > freeFailures {
		delay := firstDelay
		for n := freeFailures + 1; n < f.Count && delay < maxDelay; n++ {
			delay *= 4
		}
		f.Until = s.now.Add(min(delay, maxDelay))
	}
	if s.st.Failures == nil {
		s.st.Failures = map[string]*Failure{}
	}
	s.st.Failures[key] = f
	return f
}

// postpone delays a model's next load without counting a failure, since the model didn't cause it.
func (s *stepper) postpone(spec *Spec, message string) time.Time {
	until := s.now.Add(firstDelay)
	f := s.st.Failures[spec.Model.Key]
	if f == nil {
		f = &Failure{changed: spec.Model.Changed}
		if s.st.Failures == nil {
			s.st.Failures = map[string]*Failure{}
		}
		s.st.Failures[spec.Model.Key] = f
	}
	if until.After(f.Until) {
		f.Until = until
	}
	if f.Count == 0 {
		f.At, f.Message = s.now, message
	}
	return f.Until
}
