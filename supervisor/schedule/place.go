package schedule

import (
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// A place is where a model can be run: this machine, or a remote. Requests take the first place, by number, that has a free slot. A model
// for which this machine comes first is loaded here in the background while remotes answer.

// placed sets the instances of a remote.
func (s *stepper) placed(ev Placed) {
	if s.st.Closing {
		return
	}
	old := map[string]*Instance{}
	for _, in := range s.st.Instances {
		if in.isOn(ev.Remote) {
			old[in.Spec.Remote.Model] = in
		}
	}
	for _, spec := range ev.Specs {
		in := old[spec.Remote.Model]
		if in != nil && in.Spec.Model.Key == spec.Model.Key {
			delete(old, spec.Remote.Model)
			in.Spec = spec
		} else {
			s.st.LastGen++
			in = &Instance{ID: s.st.freeID(spec.Remote.Name + "/" + spec.Model.Key), Gen: s.st.LastGen, Spec: spec, Status: Ready, Launched: s.now, LastUsed: s.now}
			s.st.Instances = append(s.st.Instances, in)
		}
		in.Away = ev.Away
	}
	for _, in := range old {
		s.st.remove(in)
	}
}

// throttled lowers the number of slots of a remote's instance for a time, to those of the requests that it took.
func (s *stepper) throttled(ev Throttled) {
	in := s.st.Find(ev.Gen)
	if in == nil || in.Spec.Remote == nil || !ev.Until.After(s.now) {
		return
	}
	slots := max(0, in.InUse-ev.Slots)
	if !in.HeldUntil.IsZero() {
		slots = min(slots, in.Held)
	}
	in.Held = slots
	if ev.Until.After(in.HeldUntil) {
		in.HeldUntil, in.HeldWhy = ev.Until, ev.Why
	}
}

// letGo gives remotes their slots back for which they have asked long enough.
func (s *stepper) letGo() {
	for _, in := range s.st.Instances {
		if !in.HeldUntil.IsZero() && !s.now.Before(in.HeldUntil) {
			in.Held, in.HeldUntil, in.HeldWhy = 0, time.Time{}, ""
		}
	}
}

// isOn reports whether the instance is of a remote.
func (in *Instance) isOn(remote string) bool {
	return in.Spec.Remote != nil && in.Spec.Remote.Name == remote
}

// IsRemote reports whether the instance has no process here.
func (in *Instance) IsRemote() bool { return in.Spec.Remote != nil }

// isKept reports whether the instance is never evicted.
func (in *Instance) isKept() bool { return in.Spec.Pinned || in.IsRemote() }

// slots returns how many requests the instance may answer at a time now.
func (in *Instance) slots() int {
	if !in.HeldUntil.IsZero() {
		return min(in.Held, in.Spec.Parallel)
	}
	return in.Spec.Parallel
}

// isOut reports whether a request shouldn't wait for the instance: its remote can't be reached, or takes nothing for some time.
func (in *Instance) isOut(now time.Time) bool {
	return in.Away != "" || !in.HeldUntil.IsZero() && in.slots() == 0 && in.HeldUntil.Sub(now) > patience
}

// context returns the length of the context, in tokens; that of a remote which doesn't tell is boundless.
func (in *Instance) context() int {
	if in.IsRemote() && in.Spec.ContextLength == 0 {
		return boundless
	}
	return in.Spec.ContextLength
}

const boundless = 1 << 40

// out says why the instances that a waiter could use are out; false if it could use none.
func (s *stepper) out(w *Waiter) (Error, bool) {
	choice := s.st.choice(w)
	var held *Instance
	for _, in := range s.st.Instances {
		switch {
		case !in.IsRemote() || !choice.has(in):
		case in.Away != "":
			if held == nil {
				held = in
			}
		default:
			return heldBack(in, s.now), true
		}
	}
	if held != nil {
		return unreachable(held), true
	}
	return Error{}, false
}

// awaitsReturn reports whether a waiter whose places are all out still waits: a remote that can't be reached may be back in a moment.
func (s *stepper) awaitsReturn(w *Waiter) bool {
	choice := s.st.choice(w)
	if !slices.ContainsFunc(s.st.Instances, func(in *Instance) bool { return in.Away != "" && choice.has(in) }) {
		return false
	}
	if w.RefuseAt.IsZero() {
		w.RefuseAt = s.now.Add(patience)
	}
	return s.now.Before(w.RefuseAt)
}

// mayLoadHere reports whether a waiter that remotes can serve may have its model loaded on this machine, which has no instance of it
// yet.
func (s *stepper) mayLoadHere(w *Waiter) bool {
	if !w.MayLoad || w.Kind != WaitSlots || w.Instance != "" {
		return false
	}
	if f := s.st.Failures[w.Key]; f != nil && f.Until.After(s.now) {
		return false
	}
	isHere := func(in *Instance) bool { return !in.IsRemote() && in.matches(w) }
	if slices.ContainsFunc(s.st.Instances, isHere) || s.st.restart(func(r *Waiter) bool { return r.brings(w) }) != nil {
		return false
	}
	_, err := s.plans(w.Spec, w.Context)
	return err == nil
}

// loadBehind notes that a waiter's model is to be loaded here, if this machine comes before the remote that serves it.
func (s *stepper) loadBehind(w *Waiter, served *Instance) {
	if !served.IsRemote() || served.Spec.place() <= 0 || !s.mayLoadHere(w) ||
		slices.ContainsFunc(s.behind, func(spec *Spec) bool { return spec.Model.Key == w.Key }) {
		return
	}
	s.behind = append(s.behind, w.Spec)
}

// startBehind queues the loads that were noted.
func (s *stepper) startBehind() {
	for _, spec := range s.behind {
		s.again(s.st.freeID(spec.Model.Key), spec, s.now)
	}
	s.refused = s.refused || len(s.behind) > 0
	s.behind = nil
}

// maxSent bounds how many places of prompts are remembered of a remote's instance.
const maxSent = 8192

// sentPrompts remembers the beginnings of the prompts that a remote's instance was sent, since it probably still has their state. The oldest are
// forgotten first.
type sentPrompts struct {
	at   map[prefix.Sum]int // where in the ring it is
	ring []prefix.Sum
	next int
}

// add remembers a prompt.
func (m *sentPrompts) add(prompt prefix.Chain) {
	if m.at == nil {
		m.at = map[prefix.Sum]int{}
	}
	for _, link := range prompt[max(0, len(prompt)-maxSent):] {
		if len(m.ring) < maxSent {
			m.ring = append(m.ring, link.Sum)
		} else {
			if old := m.ring[m.next]; m.at[old] == m.next {
				delete(m.at, old)
			}
			m.ring[m.next] = link.Sum
		}
		m.at[link.Sum] = m.next
		m.next = (m.next + 1) % maxSent
	}
}

// common estimates how many tokens of a prompt were sent before.
func (m *sentPrompts) common(prompt prefix.Chain) int {
	if m == nil {
		return 0
	}
	for n := len(prompt); n > 0; n-- {
		if _, ok := m.at[prompt[n-1].Sum]; ok {
			return prompt.Weight(n) / bytesPerToken
		}
	}
	return 0
}

// isFarBusier reports whether an instance is so much busier than another that a prompt which it has had before is rather processed again
// there.
func (in *Instance) isFarBusier(other *Instance) bool {
	return in.InUse > 2*other.InUse+farBusier
}

// farBusier is the number of requests that one instance may always have more than another.
const farBusier = 4

// isOnlyRemote reports whether this machine has no instance that a waiter can use, now or later.
func (s *stepper) isOnlyRemote(w *Waiter) bool {
	choice := s.st.choice(w)
	return !slices.ContainsFunc(s.st.Instances, func(in *Instance) bool { return !in.IsRemote() && choice.has(in) && !in.Status.IsLeaving() })
}
