package supervisor

// place is where somebody with priority may stand: before those without who wait for the same model, as far as they
// haven't been overtaken too often.
func (s *stepper) place(w *Waiter) int {
	at := len(s.st.Waiters)
	for i := at - 1; i >= 0; i-- {
		other := s.st.Waiters[i]
		if other.Key != w.Key {
			continue
		}
		if other.Kind != WaitSlots || other.Priority || other.Overtaken >= maxOvertakes {
			break
		}
		at = i
	}
	for _, other := range s.st.Waiters[at:] {
		other.Overtaken++
	}
	return at
}

// boundQueue refuses who has just come if too many wait already.
func (s *stepper) boundQueue(w Waiter) {
	if w.Kind != WaitSlots || s.st.Limits.Queue <= 0 {
		return
	}
	waiting := 0
	for _, other := range s.st.Waiters {
		if other.Kind == WaitSlots && other.Key == w.Key {
			waiting++
		}
	}
	if waiting > s.st.Limits.Queue { // who has been served already isn't found any more
		s.refuseIf(queueFull(w.Key, waiting-1, s.st.retryAfter(w.Key, waiting)), func(o *Waiter) bool { return o.ID == w.ID && o.Kind == WaitSlots })
		s.sweep()
	}
}
