package remote

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// pace says how often a remote is asked, and when it is given up.
type pace struct {
	every   time.Duration // between two checks whether it is alive
	timeout time.Duration // of a check
	list    time.Duration // how long the list of its models may take
	pause   time.Duration // between two lists that requests lead to
	misses  int32         // how many checks in a row may go unanswered until it is away
}

// A node that is busy may answer late, and one behind a broken network never.
var (
	usualPace = pace{every: 10 * time.Second, timeout: 5 * time.Second, list: 20 * time.Second, pause: time.Second, misses: 1}
	peerPace  = pace{every: 2 * time.Second, timeout: 3 * time.Second, list: 3 * time.Second, misses: 2}
)

const (
	retryEvery = time.Second      // between checks of a remote that can't be reached
	listEvery  = 30 * time.Second // between lists of its models
)

// State is what is known of a remote.
type State struct {
	Found        // as last listed; zero: it could never be reached
	Away  string // why it can't be reached; empty: it can
	Since time.Time
}

// Watch watches a remote until it is closed.
type Watch struct {
	*Server
	pace

	changed func(State)
	wake    chan struct{}
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	reporting sync.Mutex // held while changed is called, so that the newest state is reported last

	mu    sync.Mutex
	state State
	asked bool

	missed atomic.Int32 // checks in a row without an answer
}

// NewWatch begins to watch a remote. changed is called with each state that differs from the last, one after the other, and with the first.
func NewWatch(s *Server, changed func(State)) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{Server: s, pace: usualPace, changed: changed, wake: make(chan struct{}, 1), cancel: cancel}
	if s.config.Peer != "" {
		w.pace = peerPace
	}
	w.ended.Go(func() { w.loop(ctx) })
	return w
}

// Close ends the watch. Requests in progress go on.
func (w *Watch) Close() {
	w.cancel()
	w.ended.Wait()
	w.Server.Close()
}

// Recheck asks the remote for its models soon.
func (w *Watch) Recheck() {
	select {
	case w.wake <- struct{}{}:
	default: // already requested
	}
}

// Refresh asks for the models now.
func (w *Watch) Refresh(ctx context.Context) { w.ask(ctx, true) }

// Alive asks whether the server answers, since a request to it has failed. If it doesn't, it is away, and is asked again at once
// and then every second. One that is away already isn't asked.
func (w *Watch) Alive(ctx context.Context) error {
	w.reporting.Lock() // what is known is also reported then
	state, _ := w.State()
	w.reporting.Unlock()
	if state.Away != "" {
		return errSevered
	}
	err := w.Server.Alive(ctx)
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	if w.report(nil, err) {
		w.Recheck()
	}
	return err
}

// State returns what is known now. It is false before the first answer or failure.
func (w *Watch) State() (State, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.asked
}

func (w *Watch) loop(ctx context.Context) {
	var listed time.Time
	isDue := true // the list
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			isDue = true
			state, _ := w.State()
			if wait := w.pause - time.Since(listed); wait > 0 && state.Away == "" {
				timer.Reset(wait)
				continue
			}
		case <-timer.C:
		}
		state, _ := w.State()
		isDue = isDue || state.Away != "" || time.Since(listed) >= listEvery
		if isDue {
			listed = time.Now()
		}
		isDue = !w.ask(ctx, isDue) && isDue
		if state, _ = w.State(); state.Away != "" || w.missed.Load() > 0 {
			timer.Reset(retryEvery)
		} else {
			timer.Reset(w.every)
		}
	}
}

// ask asks whether the remote is alive, or for its models. It is false if it hasn't answered, which doesn't mean anything yet.
func (w *Watch) ask(ctx context.Context, isList bool) bool {
	timeout := w.timeout
	if isList {
		timeout = w.list
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var found *Found
	var err error
	if state, _ := w.State(); !isList || state.Away != "" && state.Kind != "" {
		err = w.Server.Alive(asking) // one that lists its models may still answer no request
	}
	if isList && err == nil {
		var all Found
		all, err = w.Discover(asking)
		found = &all
	}
	isSilent := errors.Is(err, context.DeadlineExceeded)
	if ctx.Err() != nil || isSilent && w.missed.Add(1) < w.misses {
		return false
	}
	w.missed.Store(0)
	w.report(found, err)
	if isSilent && w.config.Peer != "" {
		w.sever()
	}
	return true
}

// report sets the state after an answer, or the error of a remote that doesn't answer, and reports whether it wasn't away before.
// found is nil if it wasn't asked for its models.
func (w *Watch) report(found *Found, err error) (wasThere bool) {
	w.reporting.Lock()
	defer w.reporting.Unlock()
	w.mu.Lock()
	before := w.state
	now := before
	now.Away = ""
	if err != nil {
		now.Away = err.Error()
	} else if found != nil {
		now.Found = *found
	}
	isNew := !w.asked || !reflect.DeepEqual(now.Found, before.Found) || now.Away != before.Away
	if !w.asked || (now.Away == "") != (before.Away == "") {
		now.Since = time.Now()
	}
	w.state, w.asked = now, true
	w.mu.Unlock()
	if isNew {
		w.changed(now)
	}
	if err != nil {
		w.Server.Close() // what is left of the connections leads nowhere
	}
	return before.Away == ""
}
