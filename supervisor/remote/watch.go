package remote

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// checkEvery is the interval at which a remote is asked whether it is alive, and retryEvery the one while it can't be reached.
	checkEvery = 10 * time.Second
	retryEvery = time.Second
	// listEvery is the interval at which it is asked for its models.
	listEvery = 30 * time.Second
	// listPause is between two such questions that requests lead to.
	listPause = time.Second
	// askTimeout bounds a check, and listTimeout the list.
	askTimeout  = 5 * time.Second
	listTimeout = 20 * time.Second
)

// State is what is known of a remote.
type State struct {
	Found        // as last told; zero: it could never be reached
	Away  string // why it can't be reached; empty: it can
	Since time.Time
}

// Watch watches a remote until it is closed.
type Watch struct {
	*Server

	changed func(State)
	wake    chan struct{}
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	telling sync.Mutex // held while changed is called, so that what was learnt last is told last

	mu    sync.Mutex
	state State
	asked bool

	missed atomic.Int32 // questions in a row that another node hasn't answered
}

// NewWatch begins to watch a remote. changed is called with each state that differs from the last, one after the other, and with the first.
func NewWatch(s *Server, changed func(State)) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{Server: s, changed: changed, wake: make(chan struct{}, 1), cancel: cancel}
	w.ended.Go(func() { w.loop(ctx) })
	return w
}

// Close ends the watch. Requests under way go on.
func (w *Watch) Close() {
	w.cancel()
	w.ended.Wait()
	w.Server.Close()
}

// Recheck asks the remote for its models soon.
func (w *Watch) Recheck() { w.wakeUp() }

// Alive asks whether the server answers, since a request to it has failed. If it doesn't, it is away, and is asked again at once
// and then every second. Another node that is away already isn't asked: a request that was given up with it has waited long enough.
func (w *Watch) Alive(ctx context.Context) error {
	if state, _ := w.State(); w.config.Peer != "" && state.Away != "" {
		return errSevered
	}
	err := w.Server.Alive(ctx)
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	if w.goneAway(err) {
		w.wakeUp()
	}
	return err
}

// goneAway sets the state of a remote that doesn't answer. It reports whether it was thought to be there.
func (w *Watch) goneAway(err error) bool {
	w.telling.Lock()
	defer w.telling.Unlock()
	state, _ := w.State()
	wasThere := state.Away == ""
	state.Away = err.Error()
	w.set(state)
	w.Server.Close() // what is left of the connections leads nowhere
	return wasThere
}

func (w *Watch) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default: // already requested
	}
}

// Config returns how it is reached.
func (w *Watch) Config() Config { return w.config }

// State returns what is known now. It is false before the first answer or failure.
func (w *Watch) State() (State, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.asked
}

// loop is the goroutine of the watch.
func (w *Watch) loop(ctx context.Context) {
	var listed time.Time
	isDue := false
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		woken := isDue
		isDue = false
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			state, _ := w.State()
			if wait := listPause - time.Since(listed); wait > 0 && w.config.Peer == "" && state.Away == "" {
				isDue = true
				timer.Reset(wait)
				continue
			}
			woken = true
		case <-timer.C:
		}
		if state, ok := w.State(); woken || !ok || state.Away != "" || time.Since(listed) >= listEvery {
			if listed = time.Now(); !w.list(ctx) {
				listed = time.Time{}
			}
		} else {
			w.check(ctx)
		}
		next := checkEvery
		if w.config.Peer != "" {
			next = checkPeerEvery
		}
		if state, _ := w.State(); state.Away != "" || w.missed.Load() > 0 {
			next = retryEvery
		}
		timer.Reset(next)
	}
}

// list asks for the models. It is false if nothing follows from the absence of an answer, and the question has to be asked again.
func (w *Watch) list(ctx context.Context) (told bool) {
	timeout := listTimeout
	if w.config.Peer != "" {
		timeout = askPeerTimeout
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var found Found
	var err error
	if state, _ := w.State(); state.Away != "" && state.Kind != "" {
		err = w.Server.Alive(asking) // one that lists its models may still answer no request
	}
	if err == nil {
		found, err = w.Discover(asking)
	}
	if ctx.Err() != nil || w.isMissed(ctx, err) && err != nil {
		return false
	}
	w.telling.Lock()
	state, _ := w.State()
	if err != nil {
		state.Away = err.Error()
	} else {
		state.Found, state.Away = found, ""
	}
	w.set(state)
	w.telling.Unlock()
	w.giveUp(err)
	return true
}

// check asks whether the remote is alive.
func (w *Watch) check(ctx context.Context) {
	timeout := askTimeout
	if w.config.Peer != "" {
		timeout = askPeerTimeout
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := w.Server.Alive(asking)
	if w.isMissed(ctx, err) {
		return
	}
	w.goneAway(err)
	w.giveUp(err)
}

// isMissed reports whether nothing follows from an answer, or from its absence.
func (w *Watch) isMissed(ctx context.Context, err error) bool {
	switch {
	case ctx.Err() != nil:
		return true
	case err == nil:
		w.missed.Store(0)
		return true
	case w.config.Peer == "" || !errors.Is(err, context.DeadlineExceeded):
		return false
	}
	if w.missed.Add(1) < mostMissed {
		return true
	}
	w.missed.Store(0)
	return false
}

// set sets the state, and tells of it if it has changed. The caller holds telling.
func (w *Watch) set(state State) {
	w.mu.Lock()
	isNew := !w.asked || !reflect.DeepEqual(state.Found, w.state.Found) || state.Away != w.state.Away
	if !w.asked || (state.Away == "") != (w.state.Away == "") {
		state.Since = time.Now()
	}
	w.state, w.asked = state, true
	w.mu.Unlock()
	if isNew {
		w.changed(state)
	}
}

// Refresh asks for the models now.
func (w *Watch) Refresh(ctx context.Context) { _ = w.list(ctx) }
