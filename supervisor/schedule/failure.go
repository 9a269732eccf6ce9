package schedule

import (
	"slices"
	"time"
)

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
	s.st.Waiters = slices.Insert(s.st.Waiters, len(s.st.Waiters.restarts()), w)
	return w
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
