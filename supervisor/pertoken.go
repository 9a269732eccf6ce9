package supervisor

import "time"

// PerToken is what a token of a model's prompts costs. A zero field is unknown.
type PerToken struct {
	Time  time.Duration // to process it
	Bytes float64       // of a saved state
}

const (
	// leastTimed is how many tokens a prompt must have had processed for its time to count. The first few cost more.
	leastTimed = 32
	// timeShare is the share of a new measurement in the average.
	timeShare = 8
)

// giveBack records what has become of the slots of a lease.
func (s *stepper) giveBack(in *Instance, ev Returned) {
	if in.book == nil {
		return
	}
	in.book.giveBack(ev.Waiter, ev.Used, s.now)
	key := in.Spec.Model.Key
	in.book.displaced.bound(in.Spec.PromptCache, s.st.PerToken[key].Bytes)
	for _, use := range ev.Used {
		if n := use.Prompt - use.Cached; n >= leastTimed && use.PromptTime > 0 {
			s.learnTime(key, use.PromptTime/time.Duration(n))
		}
	}
}

func (s *stepper) learnTime(key string, took time.Duration) {
	per := s.st.PerToken[key]
	if per.Time == 0 {
		per.Time = took
	} else {
		per.Time += (took - per.Time) / timeShare
	}
	s.st.setPerToken(key, per)
}

func (s *stepper) learnBytes(key string, ev Saved) {
	if ev.Bytes > 0 {
		per := s.st.PerToken[key]
		per.Bytes = float64(ev.Bytes) / float64(ev.Tokens)
		s.st.setPerToken(key, per)
	}
}

func (st *State) setPerToken(key string, per PerToken) {
	if st.PerToken == nil {
		st.PerToken = map[string]PerToken{}
	}
	st.PerToken[key] = per
}
