package supervisor

import (
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Change is a step in the life of an instance.
type Change struct {
	Kind     ChangeKind
	Instance string
	Spec     *schedule.Spec

	Progress float64         // with ChangeProgress, 0 to 1
	LoadTime time.Duration   // with ChangeLoaded
	Placed   string          // with ChangeLoaded: where it is, as [Info.Placed] says
	Why      string          // with ChangeLoadFailed: for operators
	Reason   schedule.Reason // with ChangeUnloadBegun and ChangeUnloaded; empty: its process ended unexpectedly
}

// ChangeKind is the kind of a Change.
type ChangeKind uint8

// The kinds of changes. A load that is stopped has no end: ChangeUnloadBegun follows.
const (
	ChangeLoadBegun ChangeKind = iota + 1
	ChangeProgress
	ChangeLoaded
	ChangeLoadFailed
	ChangeUnloadBegun // it gets no new requests, and is stopped once those under way have ended
	ChangeUnloaded    // its process has exited
	ChangeSettings    // its settings have changed, or it isn't unloaded after all
)

// progressEvery is the least time between two ChangeProgress of an instance.
const progressEvery = 250 * time.Millisecond

// watched is what was last told of an instance.
type watched struct {
	gen      uint64
	id       string
	spec     *schedule.Spec
	status   schedule.Status
	leaving  schedule.Reason
	progress float64
	at       time.Time // when progress was told
}

// observe tells Options.Changed what has changed since the last call.
func (s *Supervisor) observe(now time.Time) {
	isAsTold := func(w watched, in *schedule.Instance) bool {
		return w.gen == in.Gen && w.status == in.Status && w.spec == in.Spec && w.leaving == in.Leaving &&
			(in.Status != schedule.Loading || w.progress == in.Progress)
	}
	if s.options.Changed == nil || slices.EqualFunc(s.watched, s.state.Instances, isAsTold) { // it is asked after every event
		return
	}
	before, after := s.watched, make([]watched, 0, len(s.state.Instances))
	known := make([]bool, len(before))
	for _, in := range s.state.Instances {
		i := slices.IndexFunc(before, func(w watched) bool {
			return w.gen == in.Gen || in.Attempts > 0 && w.id == in.ID && w.status.IsLoading() // the port was taken: the same load goes on
		})
		if i < 0 {
			after = append(after, watched{id: in.ID})
			continue
		}
		known[i] = true
		after = append(after, before[i])
	}
	for i := range before {
		if !known[i] {
			s.tellGone(&before[i], now)
		}
	}
	for i, in := range s.state.Instances {
		s.tellChanged(&after[i], in, now)
	}
	s.watched = after
}

func (s *Supervisor) tellChanged(w *watched, in *schedule.Instance, now time.Time) {
	change := Change{Instance: in.ID, Spec: in.Spec}
	tell := func(kind ChangeKind) {
		change.Kind = kind
		s.options.Changed(change)
	}
	if in.IsRemote() {
		if w.gen != in.Gen || w.spec != in.Spec {
			tell(ChangeSettings)
		}
		w.gen, w.spec, w.status = in.Gen, in.Spec, in.Status
		return
	}
	if w.gen == 0 {
		tell(ChangeLoadBegun)
		w.spec, w.at = in.Spec, now
	}
	switch {
	case in.Status == schedule.Loading:
		if in.Progress > w.progress && now.Sub(w.at) >= progressEvery {
			change.Progress = in.Progress
			tell(ChangeProgress)
			w.progress, w.at = in.Progress, now
		}
	case in.Status == schedule.Ready && w.status.IsLoading():
		change.Progress, change.LoadTime, change.Placed = 1, in.LoadTime, in.On.Describe(&in.Applied)
		tell(ChangeLoaded)
	case in.Status.IsLeaving() && !w.status.IsLeaving():
		change.Reason = in.Leaving
		tell(ChangeUnloadBegun)
	case in.Status == schedule.Ready && w.status.IsLeaving(), w.spec.Pinned != in.Spec.Pinned, w.spec.TTL != in.Spec.TTL,
		!w.spec.IsProcessOf(in.Spec): // nobody sees another difference
		tell(ChangeSettings)
	}
	w.gen, w.spec, w.status, w.leaving = in.Gen, in.Spec, in.Status, in.Leaving
}

func (s *Supervisor) tellGone(w *watched, now time.Time) {
	change := Change{Kind: ChangeUnloaded, Instance: w.id, Spec: w.spec, Reason: w.leaving}
	if w.spec.Remote != nil {
		change.Kind = ChangeSettings
	} else if w.status.IsLoading() {
		change.Kind, change.Reason, change.Why = ChangeLoadFailed, "", openfiles.Message
		switch f, again := s.state.Failures[w.spec.Model.Key], s.state.Restarting(w.id); {
		case f != nil && f.At.Equal(now):
			change.Why = f.Message
		case s.state.Closing:
			change.Why = schedule.ErrClosing.Message
		case again != nil && again.Spared:
			change.Why = "It ran out of memory while it was loading. It is loaded again, once others have made room."
		case again != nil:
			change.Why = "The engine didn't find its GPU. It is loaded again on what is left."
		}
	}
	s.options.Changed(change)
}

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
