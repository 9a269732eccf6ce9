// Package runs makes answers whether or not a client waits for them: the responses in the background. Clients follow the log of a run,
// which is retained for some time after its end. Each run has a goroutine, which [Runs.Close] ends.
package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
)

const (
	retention = 10 * time.Minute // how long a run is retained after its end, for clients that lost their stream
	// mostPerOwner and mostInAll bound the runs in progress. Each holds its request's body and an answer in memory.
	mostPerOwner = 16
	mostInAll    = 128
	// closeTimeout bounds how long Close waits for runs that it has cancelled: the rest of them is recorded as failed at the next start.
	closeTimeout = 10 * time.Second
	retryAfter   = 5 * time.Second // when a client that has too many runs may try again
)

var (
	// ErrCancelled is the cancellation cause of a run that a client has cancelled.
	ErrCancelled = errors.New("the response was cancelled")
	// ErrShutDown is the cancellation cause of a run that the end of the server cut off.
	ErrShutDown = errors.New("the server is shutting down")
)

// Options are what Runs need of their server. All of them are required.
type Options struct {
	Log      *slog.Logger
	Store    func() *store.Store // in use, for turns; nil before the first settings
	Maker    func() string       // identifies this server among those with the store; empty: it is the only one
	IsSteady func() bool         // the other servers of the cluster are known
}

// Runs has the runs in progress, and those that ended lately, and renews all turns in progress.
type Runs struct {
	Options

	mu      sync.Mutex
	of      map[string]*Run    // by id
	turns   map[turnKey]func() // in progress, with what is called when another has ended one; nil: nothing is
	active  int                // runs in progress
	held    int                // bytes of all logs
	closed  bool
	ended   sync.WaitGroup
	perRun  int // the most bytes of a log
	inTotal int // the most bytes of all logs
}

// New returns no runs yet.
func New(o Options) *Runs {
	return &Runs{Options: o, of: map[string]*Run{}, turns: map[turnKey]func(){}, perRun: runBytes, inTotal: runBytesInAll}
}

// Run is an answer that is made whether or not a client waits for it. Clients follow its log. It ends by itself, by Cancel or by Close.
type Run struct {
	ID, Owner string

	all    *Runs
	ctx    context.Context //nolint:containedctx // the run's own
	cancel context.CancelCauseFunc
	done   chan struct{} // closed at the end
	works  atomic.Bool
	store  *store.Store // that has its turn, whatever the settings say later

	// These are guarded by all.mu.
	log    runLog
	asking map[string]chan<- bool // for the approval of a call, by its id
	forget *time.Timer            // nil: it is in progress
}

// Start stores a turn with the status [store.InProgress], and starts the run that makes its answer. do must return soon after its
// context is done, whose cause is then [ErrCancelled] or [ErrShutDown], and must call Finish. It must not panic. The error is
// [ErrShutDown], a [*access.LimitError] if too many runs are in progress, or the store's.
func (all *Runs) Start(ctx context.Context, t *store.Turn, do func(ctx context.Context, r *Run)) (*Run, error) {
	r, err := all.add(t.ID, t.Owner)
	if err != nil {
		return nil, err
	}
	r.store = all.Store()
	t.Maker = all.Maker()
	if err := r.store.Put(ctx, t); err != nil {
		r.cancel(nil)
		all.mu.Lock()
		defer all.mu.Unlock()
		all.active--
		all.drop(r)
		return nil, err
	}
	if err := all.start(r, do); err != nil {
		return nil, err // at the next start, the turn becomes failed
	}
	return r, nil
}

// Finish stores the end of the run's turn, unless it was deleted or cancelled in the meantime. The error is the store's.
func (r *Run) Finish(ctx context.Context, t *store.Turn) error {
	r.all.release(turnKey{r.store, r.ID})
	err := r.store.Finish(ctx, t)
	if _, isCancelled := errors.AsType[*store.Exists](err); isCancelled {
		return nil
	}
	return unlessDeleted(err)
}

func (all *Runs) add(id, owner string) (*Run, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if err := all.mayStart(owner); err != nil {
		return nil, err
	}
	r := &Run{ID: id, Owner: owner, all: all, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(context.Background()) // of no request
	all.of[id] = r
	all.active++
	all.count(r, runOverhead)
	return r, nil
}

func (all *Runs) start(r *Run, do func(context.Context, *Run)) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed {
		return ErrShutDown
	}
	all.turns[turnKey{r.store, r.ID}] = r.Cancel
	all.ended.Go(func() {
		defer r.end()
		do(r.ctx, r)
	})
	return nil
}

// mayStart returns why an owner may not start another run, or nil. The caller holds all.mu.
func (all *Runs) mayStart(owner string) error {
	if all.closed {
		return ErrShutDown
	}
	mine := 0
	for _, r := range all.of {
		if r.Owner == owner && r.forget == nil {
			mine++
		}
	}
	var message string
	switch {
	case mine >= mostPerOwner:
		message = fmt.Sprintf("You have %d background responses in progress, which is as many as are allowed. "+
			"Wait until one has ended, or cancel one.", mine)
	case all.active >= mostInAll:
		message = "The server has as many background responses in progress as it can have. Try again soon, or without \"background\"."
	default:
		return nil
	}
	return &access.LimitError{Message: message, RetryAfter: retryAfter}
}

// Get returns an owner's run, in progress or ended lately; nil if there is none.
func (all *Runs) Get(owner, id string) *Run {
	all.mu.Lock()
	defer all.mu.Unlock()
	if r := all.of[id]; r != nil && r.Owner == owner {
		return r
	}
	return nil
}

// end notes that the answer is complete. The run is forgotten some time later.
func (r *Run) end() {
	r.cancel(nil)
	all := r.all
	all.mu.Lock()
	defer all.mu.Unlock()
	all.active--
	r.forget = time.AfterFunc(retention, r.Forget)
	if all.closed || all.of[r.ID] != r {
		r.forget.Stop()
	}
	close(r.done)
	r.log.wake()
}

// Cancel has the run end. It doesn't wait for the end.
func (r *Run) Cancel() { r.cancel(ErrCancelled) }

// CancelAndWait is Cancel, and waits for the end. The error is that of ctx.
func (r *Run) CancelAndWait(ctx context.Context) error {
	r.Cancel()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Working notes that an engine has begun to answer.
func (r *Run) Working() { r.works.Store(true) }

// IsWorking reports whether an engine has begun to answer; until then, the run waits for one.
func (r *Run) IsWorking() bool { return r.works.Load() }

// Done returns a channel that is closed when the run has ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// HasEnded reports whether the run has ended.
func (r *Run) HasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Forget drops the run and its log. A run in progress is cancelled.
func (r *Run) Forget() {
	r.Cancel()
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.all.drop(r)
}

func (all *Runs) drop(r *Run) {
	if all.of[r.ID] != r {
		return
	}
	delete(all.of, r.ID)
	if r.forget != nil {
		r.forget.Stop()
	}
	all.held -= r.log.bytes
	r.log.clear()
}

// Close cancels all runs, and waits for their ends, but not for long.
func (all *Runs) Close() {
	all.mu.Lock()
	all.closed = true
	for _, r := range all.of {
		r.cancel(ErrShutDown)
		if r.forget != nil {
			r.forget.Stop()
		}
	}
	all.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		all.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeTimeout):
	}
}
