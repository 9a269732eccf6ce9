package schedule

import "slices"

// choice is the set of instances that a waiter may use: the one that it names, or else those of its model that fit.
type choice struct {
	waiter  *Waiter
	named   *Instance
	away    bool // the one that it names is being restarted
	longest int  // the longest context of the instances that fit otherwise, in tokens

	key uint64 // by which servers are ranked for the model

	// In a cluster:
	self    string // this node; empty: there is no cluster
	here    bool   // this machine would load the model if there were no other node
	settled bool   // no further node needs to load it: it is being loaded here, or the instances that there are suffice
}

func (st *State) choice(w *Waiter) choice {
	c := choice{waiter: w, named: st.named(w)}
	if c.named != nil || !w.uses() {
		return c
	}
	if w.Instance != "" {
		c.away = st.Waiters.restart(func(r *Waiter) bool { return r.isNamedBy(w) }) != nil
	}
	c.lookAround(st)
	if w.Context == (ContextNeed{}) {
		return c
	}
	for _, in := range st.Instances {
		if in.matches(w) && (!in.Status.IsLeaving() || in.Leaving == ForSettings) && in.Away == "" && in.slots() > 0 &&
			(!in.isPeer() || !in.isUnloaded()) {
			c.longest = max(c.longest, in.context())
		}
	}
	for _, r := range st.Waiters.restarts() {
		if !r.gone && r.brings(w) {
			c.longest = max(c.longest, r.Spec.ContextLength)
		}
	}
	return c
}

// has reports whether the waiter may use an instance, now or later.
func (c *choice) has(in *Instance) bool {
	if c.named != nil {
		return in == c.named
	}
	w := c.waiter
	// Another node isn't asked to load the model if that is needless, or done here.
	isNeedless := in.isPeer() && in.isUnloaded() && (c.settled || c.here && rank(c.self, c.key) > rank(in.Spec.Remote.Name, c.key))
	if in.IsRemote() && (w.Kind != WaitSlots || isNeedless || w.Here || slices.Contains(w.Tried, in.Gen)) {
		return false
	}
	return w.uses() && !c.away && in.matches(w) && in.context() >= min(w.Context.Likely, c.longest)
}

// prefers reports whether an instance is better than another: one of an earlier place, then one that surely fits, then one that holds far
// more of the prompt, then the less busy one; see prefersRemote for those of remotes.
func (c *choice) prefers(in, other *Instance) bool {
	if first, second := in.Spec.place(), other.Spec.place(); first != second {
		return first < second
	}
	if in.IsRemote() || other.IsRemote() {
		return c.prefersRemote(in, other)
	}
	safe := min(c.waiter.Context.Safe, c.longest)
	if fits := in.context() >= safe; fits != (other.context() >= safe) {
		return fits
	}
	if more := in.holds(c.waiter) - other.holds(c.waiter); more >= farMore || more <= -farMore {
		return more > 0
	}
	return in.InUse < other.InUse
}

// matches reports whether an instance has the model and the draft model that the waiter wants. An instance with a draft model
// that neither the request nor the settings ask for doesn't match, nor does a place that the request has come from.
func (in *Instance) matches(w *Waiter) bool {
	if in.Spec.Model.Key != w.Key {
		return false
	}
	if in.IsRemote() && slices.ContainsFunc(in.Spec.Remote.Via, func(id string) bool { return slices.Contains(w.Hops, id) }) {
		return false
	}
	return w.takesDraft(in.Spec.draft()) || in.Next != nil && w.takesDraft(in.Next.draft())
}

// takesDraft reports whether an instance with that draft model will do. An empty key means no draft model.
func (w *Waiter) takesDraft(draft string) bool {
	if w.Draft != "" {
		return draft == w.Draft
	}
	return draft == "" || draft == w.Spec.draft()
}

// brings reports whether the instance that w loads can serve o.
func (w *Waiter) brings(o *Waiter) bool {
	return w.Key == o.Key && (o.takesDraft(w.Spec.draft()) || w.isNamedBy(o))
}

// isNamedBy reports whether w is for the very instance that o names.
func (w *Waiter) isNamedBy(o *Waiter) bool {
	return w.Key == o.Key && w.Instance != "" && w.Instance == o.Instance
}

// LoadingFor returns the loading instance that a waiter waits for, the one with the most progress. It is nil if there is none,
// or if the waiter waits for a ready one.
func (st *State) LoadingFor(w *Waiter) *Instance {
	var best *Instance
	choice := st.choice(w)
	for _, in := range st.Instances {
		if !choice.has(in) {
			continue
		}
		if in.Status == Ready {
			return nil
		}
		if in.Status.IsLoading() && (best == nil || in.Progress > best.Progress) {
			best = in
		}
	}
	return best
}
