package schedule

import "cmp"

// portAttempts is how often an instance is launched when other programs take the port chosen for it.
const portAttempts = 3

// Condemned says that a process hangs. Its requests are lost anyway.
type Condemned struct {
	Gen    uint64
	Reason string
}

func (ev Condemned) apply(s *stepper) {
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

// EndAsked says that somebody else has sent a process a signal to terminate. The process still answers, so the instance is unloaded
// once its requests have ended. It isn't restarted automatically: the signal may be from a daemon that frees memory.
type EndAsked struct{ Gen uint64 }

func (ev EndAsked) apply(s *stepper) {
	if in := s.st.Find(ev.Gen); in != nil && in.Status == Ready {
		s.leave(in, ForSignal)
	}
}

// Exited says that a process and its descendants have exited, or that it couldn't be started.
type Exited struct {
	Gen    uint64
	Reason string
	Killed bool // by SIGKILL from outside, as the system kills a process that takes too much memory
	// OutOfMemory says that the system killed it because memory ran out.
	OutOfMemory bool
	// NoFiles says, as a sentence for clients, that the server was out of file descriptors; empty: it wasn't.
	NoFiles string
}

func (ev Exited) apply(s *stepper) {
	in := s.st.Find(ev.Gen)
	if in == nil {
		return
	}
	if len(in.OnGPUs) > 0 {
		s.st.FreedAt = s.now
	}
	if !s.st.Closing && in.Status.IsLoading() && in.PortTaken && !in.Retrying && in.Attempts+1 < portAttempts {
		s.st.LastGen++
		in.Gen, in.Attempts, in.PortTaken, in.Savable, in.Trouble, in.Applied = s.st.LastGen, in.Attempts+1, false, false, "", Applied{}
		s.do(Spawn{in.ID, in.Gen})
		return
	}
	s.st.removeIf(func(o *Instance) bool { return o == in })
	switch {
	case s.st.Closing:
	case in.Status.IsLoading():
		ev.whileLoading(s, in)
	case in.Status == Ready, in.Status == Draining, in.Leaving == ForSilence:
		ev.unexpectedly(s, in)
	case in.Answered:
		delete(s.st.Failures, in.Spec.Model.Key)
	}
}

// whileLoading handles the exit of a process that was loading.
func (ev Exited) whileLoading(s *stepper, in *Instance) {
	if in.NoDevice && len(in.On.Devices) > 0 { // it is loaded on what is left
		s.again(in.ID, in.Spec, s.now).Unasked = in.Unasked
		return
	}
	hadNoMemory := in.OutOfMemory || ev.Killed
	if hadNoMemory && !in.Spared {
		s.markWanted()
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
	var f *Failure
	if ev.NoFiles != "" {
		f = s.st.Failures.postpone(in.Spec, ev.NoFiles, s.now)
	} else {
		err = loadFailed(in, ev.Reason, hadNoMemory)
		f = s.st.Failures.add(in.Spec, err.Message, s.now)
	}
	s.refuseLoaders(in.ID, err)
	if in.Unasked && in.Spec.AutoRestart {
		s.again(in.ID, in.Spec, f.Until)
	}
	s.refuseIf(err, func(w *Waiter) bool {
		if !w.uses() || !in.matches(w) {
			return false
		}
		_, hope, leaving := s.look(w)
		return !hope && !leaving
	})
}

// unexpectedly handles the exit of a process that was ready. The instance is restarted with AutoRestart, and otherwise loaded by the next
// request. An exit during requests isn't counted as a failure of the model, since a request may have caused it and others must not be
// refused for that.
func (ev Exited) unexpectedly(s *stepper, in *Instance) {
	if ev.OutOfMemory { // it is counted with a quarter more the next time: it was measured before it took what it then didn't get
		s.reckon(in)
		l := s.st.Learnt[in.Spec.Model.Key]
		l.Least = in.Claim + in.Claim/4
		l.Size.memory += l.Least - in.Claim
		s.st.Learnt[in.Spec.Model.Key] = l
	}
	reason := ev.Reason
	if in.Leaving == ForSilence {
		reason = in.Trouble
	}
	s.do(Crashed{in.ID, in.Spec.Model.Key, reason})
	at := s.now
	if in.InUse == 0 && in.Leaving != ForSilence {
		f := s.st.Failures.add(in.Spec, "its engine ended unexpectedly: "+reason, s.now)
		f.Told = "its engine ended unexpectedly" // its output may quote other clients' requests
		at = f.Until
	} else if f := s.st.Failures[in.Spec.Model.Key]; f != nil && f.Until.After(at) {
		at = f.Until
	}
	if spec := cmp.Or(in.Next, in.Full, in.Spec); spec.AutoRestart && in.Status != Draining {
		s.again(in.ID, spec, at)
	}
}
