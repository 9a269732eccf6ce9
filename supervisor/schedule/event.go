package schedule

import (
	"slices"
	"time"
)

// Event is an input of Step: something that has happened.
type Event interface {
	// apply changes the state, and adds the effects that follow at once.
	apply(s *stepper)
}

// Tick says that the Deadline has passed. What is due is found after every event.
type Tick struct{}

func (Tick) apply(*stepper) {}

// Asked adds a waiter.
type Asked struct{ Waiter Waiter }

func (ev Asked) apply(s *stepper) {
	w := &ev.Waiter
	w.Since, w.Turn = s.now, s.now
	switch {
	case s.st.Closing:
		s.do(Refuse{w.ID, ErrClosing})
		return
	case w.Kind == WaitUnload:
		if !ev.unload(s) {
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
	s.st.Waiters.add(w)
}

// unload starts the unload that a waiter is for. It returns false if there is nothing to wait for.
func (ev *Asked) unload(s *stepper) bool {
	w := &ev.Waiter
	in, coming := s.st.ByID(w.Instance), s.st.Restarting(w.Instance)
	if coming != nil {
		coming.gone = true
	}
	switch {
	case in == nil && coming == nil:
		s.do(Refuse{w.ID, UnknownInstance(w.Instance)})
		return false
	case in == nil:
		s.refuseLoaders(w.Instance, unloadedWhileLoading(w.Instance))
		s.do(Grant{Waiter: w.ID})
		return false
	case in.IsRemote():
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

// GaveUp says that a waiter's caller has given up. It has no effect after a Grant: the caller must return what was granted.
type GaveUp struct{ Waiter uint64 }

func (ev GaveUp) apply(s *stepper) {
	s.refuseIf(errCancelled, func(w *Waiter) bool { return w.ID == ev.Waiter && w.Kind != WaitRestart })
}

// Returned returns leased slots.
type Returned struct {
	Gen   uint64
	Slots int

	Answered bool   // a request was answered completely
	Key      string // of the model, if Answered

	Waiter uint64 // that they were leased to
	Used   []Use  // of the slots that were used; the others are as they were

	TokenBytes float64 // of the state of a token; 0: unknown
}

func (ev Returned) apply(s *stepper) {
	in := s.st.Find(ev.Gen)
	switch f := s.st.Failures[ev.Key]; {
	case !ev.Answered || in != nil && in.IsRemote():
	case in != nil:
		in.Answered = true
		delete(s.st.Failures, ev.Key)
	case f != nil: // its process has exited since
		f.Count, f.Until = 1, s.now
	}
	if in == nil {
		return
	}
	in.InUse -= ev.Slots
	if in.book != nil {
		in.book.giveBack(ev.Waiter, ev.Used, s.now)
		in.book.displaced.bound(in.Spec.PromptCache, ev.TokenBytes)
	}
	in.LastUsed = s.now
}

// Measured is the resident memory of a process.
type Measured struct {
	Gen      uint64
	Resident int64 // bytes
}

func (ev Measured) apply(s *stepper) {
	if in := s.st.Find(ev.Gen); in != nil && in.Status == Ready {
		in.Resident = ev.Resident
		s.reckon(in)
	}
}

// Configured sets new settings. Those that need a new process wait until the instance is idle, the others take effect at once. Without
// Specs, these follow, and earlier failures of models count no more.
type Configured struct {
	Limits Limits
	Specs  map[uint64]*Spec // by generation: what an instance would be loaded with now
}

func (ev Configured) apply(s *stepper) {
	s.st.Limits, s.st.Lost = ev.Limits, nil
	if ev.Specs == nil { // the administrator may have repaired what failed
		s.st.Failures = nil
	}
	if ev.Limits.SaveAfter <= 0 { // the files are deleted then
		s.st.dropSaved(true, func(string, string) bool { return true })
	}
	for _, in := range s.st.Instances {
		spec := ev.Specs[in.Gen]
		if spec == nil || in.IsRemote() {
			continue
		}
		if size := spec.sizeOf(in.Spec); size >= 0 {
			own, policy := *in.Spec, spec.smaller(size)
			own.Memory, own.Offload, own.Reserve, own.Smaller = policy.Memory, policy.Offload, policy.Reserve, policy.Smaller
			own.TTL, own.Pinned, own.AutoRestart, own.Recipe = policy.TTL, policy.Pinned, policy.AutoRestart, policy.Recipe
			own.Devices = policy.Devices
			in.Spec, in.Full, in.Next = &own, nil, nil
			if size > 0 {
				in.Full = spec
			}
		} else {
			if in.Next == nil {
				in.LateGrants = 0
			}
			in.Next = spec
			if in.Spec.Pinned != spec.Pinned {
				copied := *in.Spec
				copied.Pinned = spec.Pinned
				in.Spec = &copied
			}
		}
		in.stayIfPinned()
	}
}

// Respecified changes what doesn't affect the process of an instance, now and after a restart. Change gets copies, perhaps several, and
// must neither wait nor use the supervisor.
type Respecified struct {
	Gen    uint64
	Change func(*Spec)
}

func (ev Respecified) apply(s *stepper) {
	in := s.st.Find(ev.Gen)
	if in == nil {
		return
	}
	for _, spec := range []**Spec{&in.Spec, &in.Full, &in.Next} {
		if *spec != nil {
			copied := **spec
			ev.Change(&copied)
			*spec = &copied
		}
	}
	in.stayIfPinned()
}

// stayIfPinned cancels the eviction of an instance that has been pinned meanwhile.
func (in *Instance) stayIfPinned() {
	if in.Spec.Pinned && in.Status == Draining && in.Leaving == ForRoom {
		in.Status, in.Leaving, in.SaveBy = Ready, "", time.Time{}
	}
}

// RestartsConfigured sets what instances that wait for their restart are started with. The cause of a delay may be gone with the
// old settings.
type RestartsConfigured struct {
	Specs map[string]*Spec // by id
}

func (ev RestartsConfigured) apply(s *stepper) {
	for _, w := range s.st.Waiters.restarts() {
		spec := ev.Specs[w.Instance]
		if spec == nil || w.gone || spec.Model.Key != w.Key {
			continue
		}
		w.Spec, w.Full = spec, nil
		if w.NotBefore.After(s.now) {
			w.NotBefore = s.now
		}
	}
}

// Closed shuts the supervisor down.
type Closed struct{}

func (Closed) apply(s *stepper) {
	s.st.Closing = true
	for _, w := range s.st.Waiters.restarts() {
		w.gone = true
	}
	s.refuseIf(ErrClosing, func(w *Waiter) bool { return w.Kind != WaitUnload })
	s.st.removeIf((*Instance).IsRemote)
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

// Signal is the meaning of a line of an engine's output.
type Signal struct {
	Kind     SignalKind
	Progress float64 // 0 to 1, with SignalProgress
	Text     string  // the engine's message, with SignalTrouble; what has happened, with SignalDead; the buffer's name, with SignalBuffer
	Bytes    int64   // with SignalBuffer
	Weights  bool    // with SignalBuffer: it has weights

	Layers, AllLayers int // with SignalLayers

	Toggle Toggle // with SignalFlashAttention
}

// SignalKind is the kind of a Signal.
type SignalKind uint8

// The kinds of signals.
const (
	SignalProgress       SignalKind = iota + 1 // the model is loading
	SignalReady                                // requests can be sent
	SignalTrouble                              // why the load will fail, if it fails
	SignalPortTaken                            // the port is in use
	SignalOutOfMemory                          // an allocation failed
	SignalBuffer                               // a permanent buffer was allocated
	SignalFlashAttention                       // whether flash attention is used
	SignalListening                            // connections are accepted; the model needn't be loaded
	SignalNoDevice                             // it doesn't find a GPU that it was to use
	SignalLayers                               // how many of the model's layers are on GPUs
	SignalReduced                              // it doesn't find the room on GPUs that it was to use
	SignalDead                                 // it can't go on, although its process lives
)

// Signalled is a report of a process about itself.
type Signalled struct {
	Gen    uint64
	Signal Signal
}

func (ev Signalled) apply(s *stepper) {
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
	case SignalNoDevice: // no load is planned on its GPUs until they are set again
		in.NoDevice = true
		for _, name := range in.On.Devices {
			if !slices.Contains(s.st.Lost, name) {
				s.st.Lost = append(slices.Clone(s.st.Lost), name)
			}
		}
	case SignalBuffer:
		in.Applied.allocated(sig)
	case SignalLayers:
		if in.Applied.AllLayers == 0 { // a draft model's follow
			in.Applied.Layers, in.Applied.AllLayers = sig.Layers, sig.AllLayers
		}
	case SignalReduced:
		in.Applied.Reduced = true
		ev.tryWhole(s, in)
	case SignalFlashAttention:
		in.Applied.FlashAttention = sig.Toggle
	}
}

// Effect is an output of Step: an action or an announcement. Effects are comparable.
type Effect interface{ effect() }

type (
	// Spawn starts an instance's process.
	Spawn struct {
		Instance string
		Gen      uint64
	}
	// Stop stops a process.
	Stop struct {
		Gen    uint64
		Reason Reason
	}
	// Save has the state of a slot kept.
	Save struct {
		Gen     uint64
		Slot    int
		Leaving bool // the instance is stopped afterwards
	}
	// Sample asks for the memory of the GPUs.
	Sample struct {
		Urgent bool // a load waits for it
	}
	// Grant ends a wait with success. The slots are leased until they are Returned.
	Grant struct {
		Waiter, Gen uint64
		Slots       int
		SawLoad     bool // the waiter waited for the instance's load
	}
	// Refuse ends a wait with an error.
	Refuse struct {
		Waiter uint64
		Err    Error
	}
	// Loaded announces that an instance has become ready.
	Loaded struct{ Gen uint64 }
	// Crashed announces that the process of a ready instance exited unexpectedly. The instance is gone.
	Crashed struct{ Instance, Key, Reason string }
)

func (Spawn) effect()   {}
func (Stop) effect()    {}
func (Save) effect()    {}
func (Sample) effect()  {}
func (Grant) effect()   {}
func (Refuse) effect()  {}
func (Loaded) effect()  {}
func (Crashed) effect() {}
