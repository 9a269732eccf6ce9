package supervisor

// ContextNeed is how many tokens of context a request takes. The engine counts a prompt's tokens only once it has the
// request, so these are bounds to choose an instance by. The zero value fits every instance.
type ContextNeed struct {
	Likely int // an instance with fewer isn't asked while the model has one with more
	Safe   int // an instance with as many is preferred to one with fewer
}

// choice is which instances a waiter may use: the one that it names, else those of its model that fit it.
type choice struct {
	waiter  *Waiter
	named   *Instance
	away    bool // the one that it names is being started again
	longest int  // tokens of context of the longest that fits it but for that
}

func (st *State) choice(w *Waiter) choice {
	c := choice{waiter: w, named: st.named(w)}
	if c.named != nil || !w.uses() {
		return c
	}
	if w.Instance != "" {
		c.away = st.restart(func(r *Waiter) bool { return r.isNamedBy(w) }) != nil
	}
	if w.Context == (ContextNeed{}) {
		return c
	}
	for _, in := range st.Instances {
		if in.matches(w) && (!in.Status.IsLeaving() || in.Leaving == ForSettings) {
			c.longest = max(c.longest, in.Spec.ContextLength)
		}
	}
	for _, r := range st.Waiters[:st.restarts()] {
		if !r.gone && r.brings(w) {
			c.longest = max(c.longest, r.Spec.ContextLength)
		}
	}
	return c
}

// has tells whether the waiter may use an instance, now or later.
func (c *choice) has(in *Instance) bool {
	if c.named != nil {
		return in == c.named
	}
	w := c.waiter
	return w.uses() && !c.away && in.matches(w) && in.Spec.ContextLength >= min(w.Context.Likely, c.longest)
}

// prefers tells whether one instance is better than another: it surely fits, else it is less busy.
func (c *choice) prefers(in, other *Instance) bool {
	safe := min(c.waiter.Context.Safe, c.longest)
	if fits := in.Spec.ContextLength >= safe; fits != (other.Spec.ContextLength >= safe) {
		return fits
	}
	return in.InUse < other.InUse
}

// matches tells whether an instance is of the model that the waiter wants, and has the draft model that it wants. One with a
// draft model that neither the request nor the settings ask for doesn't match.
func (in *Instance) matches(w *Waiter) bool {
	return in.Spec.Model.Key == w.Key && (w.takesDraft(in.Spec.draft()) || in.Next != nil && w.takesDraft(in.Next.draft()))
}

// takesDraft tells whether an instance with that draft model will do; an empty key is one without.
func (w *Waiter) takesDraft(draft string) bool {
	if w.Draft != "" {
		return draft == w.Draft
	}
	return draft == "" || draft == w.Spec.draft()
}

// brings tells whether what a waiter wants loaded is what another wants to use.
func (w *Waiter) brings(o *Waiter) bool {
	return w.Key == o.Key && (o.takesDraft(w.Spec.draft()) || w.isNamedBy(o))
}

// isNamedBy tells whether a waiter is for the very instance that another names.
func (w *Waiter) isNamedBy(o *Waiter) bool {
	return w.Key == o.Key && w.Instance != "" && w.Instance == o.Instance
}
