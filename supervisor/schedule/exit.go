package schedule

import (
	"cmp"
	"slices"
	"time"
)

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

const (
	// The first freeFailures failures in a row are retried at once. After the next, the model isn't loaded for firstDelay;
	// each further failure makes that four times as long, up to maxDelay.
	freeFailures = 2
	firstDelay   = time.Second
	maxDelay     = time.Minute
	// forgetAfter is how long a failure counts.
	forgetAfter = 10 * time.Minute
)

// Failure records the failures of a model.
type Failure struct {
	Count   int       // in a row
	At      time.Time // the last one
	Until   time.Time // when it may be tried again
	Message string    // for operators
	Told    string    // for clients, if Message may quote other clients' requests; empty: Message
	changed time.Time // modification time of the model's file: a changed file starts a new count
}

// Counts reports whether the failure isn't too long ago to be told.
func (f *Failure) Counts(now time.Time) bool { return f.Count > 0 && now.Sub(f.At) <= forgetAfter }

// Failures has, by key, the models that failed and haven't worked since.
type Failures map[string]*Failure

// add records a failure and sets the back-off.
func (fs *Failures) add(spec *Spec, message string, now time.Time) *Failure {
	f := (*fs)[spec.Model.Key]
	if f == nil || now.Sub(f.At) > forgetAfter || !f.changed.Equal(spec.Model.Changed) {
		f = fs.new(spec)
	}
	f.Count, f.At, f.Message, f.Told, f.Until = f.Count+1, now, message, "", now
	if f.Count > freeFailures {
		delay := firstDelay
		for n := freeFailures + 1; n < f.Count && delay < maxDelay; n++ {
			delay *= 4
		}
		f.Until = now.Add(min(delay, maxDelay))
	}
	return f
}

// postpone delays a model's next load without counting a failure, since the model didn't cause it.
func (fs *Failures) postpone(spec *Spec, message string, now time.Time) *Failure {
	f := (*fs)[spec.Model.Key]
	if f == nil {
		f = fs.new(spec)
	}
	if until := now.Add(firstDelay); until.After(f.Until) {
		f.Until = until
	}
	if f.Count == 0 {
		f.At, f.Message = now, message
	}
	return f
}

func (fs *Failures) new(spec *Spec) *Failure {
	if *fs == nil {
		*fs = Failures{}
	}
	f := &Failure{changed: spec.Model.Changed}
	(*fs)[spec.Model.Key] = f
	return f
}

// forget clears the failures of a model. Its pending restarts are due at once, with the current file.
func (s *stepper) forget(spec *Spec) {
	delete(s.st.Failures, spec.Model.Key)
	for _, w := range s.st.Waiters.restarts() {
		if w.Key != spec.Model.Key || !w.NotBefore.After(s.now) {
			continue
		}
		again := *w.Spec
		again.Model = spec.Model
		w.Spec, w.NotBefore = &again, s.now
	}
}

// again queues a restart of an instance, before all waiters.
func (s *stepper) again(id string, spec *Spec, at time.Time) *Waiter {
	w := &Waiter{Kind: WaitRestart, Turn: at, NotBefore: at, Unasked: true, Demand: Demand{Key: spec.Model.Key, Instance: id, Spec: spec}}
	s.st.Waiters = slices.Insert(s.st.Waiters, len(s.st.Waiters.restarts()), w)
	return w
}

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
