package supervisor

import "time"

// Progress is how a wait stands.
type Progress struct {
	Ahead    int     // how many wait for the same model and came before
	Instance string  // the one that is being loaded; empty while none is
	Loaded   float64 // of it, 0 to 1; never less than before, also when it is started again

	// LoadTime is how long the Instance took to load, once it is ready and the wait isn't over: others have its slots.
	LoadTime time.Duration
}

// Watch is told how a wait goes: the latest, not every step of the way. Who waits reads from C while it waits.
type Notifier struct {
	c    chan Progress
	last Progress
}

// NewNotifier makes a watch for one wait.
func NewNotifier() *Notifier { return &Notifier{c: make(chan Progress, 1), last: Progress{Ahead: -1}} }

// C gives the latest progress whenever there is any. It is never closed.
func (w *Notifier) C() <-chan Progress { return w.c }

// tell replaces what hasn't been read. Only the supervisor's loop calls it.
func (w *Notifier) tell(p Progress) {
	p.Loaded = max(p.Loaded, w.last.Loaded)
	if p == w.last {
		return
	}
	w.last = p
	select {
	case <-w.c:
	default:
	}
	w.c <- p
}

// notify tells everybody who notifiers how it stands.
func (s *Supervisor) notify() {
	ahead := map[string]int{}
	for _, w := range s.state.Waiters {
		if c, ok := s.waiting[w.ID]; ok && c.notifier != nil {
			p := Progress{Ahead: ahead[w.Key]}
			if in := s.state.loadingFor(w); in != nil {
				p.Instance, p.Loaded = in.ID, in.Progress
			} else if in := s.state.byID(c.notifier.last.Instance); in != nil && in.Status == Ready {
				p.Instance, p.Loaded, p.LoadTime = in.ID, 1, in.LoadTime
			}
			c.notifier.tell(p)
		}
		if w.Kind == WaitSlots {
			ahead[w.Key]++
		}
	}
}

// loadingFor is the loading instance that a waiter waits for, the one that has come furthest; nil if there is none, or if
// it waits for one that is ready.
func (st *State) loadingFor(w *Waiter) *Instance {
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
