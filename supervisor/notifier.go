package supervisor

import (
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Progress is the state of a wait.
type Progress struct {
	Ahead    int     // requests for the same model that are ahead in the queue
	Instance string  // the one being loaded; empty while none is
	Loaded   float64 // the progress of its load, 0 to 1; it never falls, even if the load is restarted

	// LoadTime is how long the Instance took to load. It is set when the Instance is ready while the wait goes on, since
	// others use its slots.
	LoadTime time.Duration
}

// Notifier delivers the latest progress of a wait, not every step. Read from C while waiting.
type Notifier struct {
	c    chan Progress
	last Progress
}

// NewNotifier returns a Notifier for one wait.
func NewNotifier() *Notifier { return &Notifier{c: make(chan Progress, 1), last: Progress{Ahead: -1}} }

// C returns the channel that delivers the latest progress. It is never closed.
func (w *Notifier) C() <-chan Progress { return w.c }

// tell replaces progress that hasn't been read yet. It is called with the supervisor's lock.
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

func (s *Supervisor) notify() {
	ahead := map[string]int{}
	for _, w := range s.state.Waiters {
		if c, ok := s.waiting[w.ID]; ok && c.notifier != nil {
			p := Progress{Ahead: ahead[w.Key]}
			if in := s.state.LoadingFor(w); in != nil {
				p.Instance, p.Loaded = in.ID, in.Progress
			} else if in := s.state.ByID(c.notifier.last.Instance); in != nil && in.Status == schedule.Ready {
				p.Instance, p.Loaded, p.LoadTime = in.ID, 1, in.LoadTime
			}
			c.notifier.tell(p)
		}
		if w.Kind == schedule.WaitSlots {
			ahead[w.Key]++
		}
	}
}
