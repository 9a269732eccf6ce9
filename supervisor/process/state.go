package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// State is a stage in the life of a process, which only goes to later ones.
type State uint8

// The stages.
const (
	Preparing State = iota // it isn't started yet
	Loading                // it loads its model
	Warming                // its model is loaded, and what would hold up its first request is done
	Ready                  // it answers requests
	Failing                // it can't go on, and is killed when it has written why
	Stopping               // it is being stopped
	Gone                   // it has exited
)

var stateNames = [...]string{
	Preparing: "preparing", Loading: "loading", Warming: "warming", Ready: "ready", Failing: "failing", Stopping: "stopping", Gone: "gone",
}

func (s State) String() string { return stateNames[s] }

// witness is who says what has become of a process.
type witness string

const (
	byLaunch witness = "the launch"
	byOutput witness = "a line of its output"
	byHealth witness = "its health check"
	byTrial  witness = "its answer to a trial request"
	byWarmUp witness = "the end of its warm-up"
	byTimer  witness = "the timer of its load"
	byOwner  witness = "its owner"
	bySystem witness = "its exit"
)

// How long a process that can't go on lives, see life.fail.
const (
	deathWait = 100 * time.Millisecond
	deathMost = time.Second
)

// transitions lists who may say what has become of a process, and when:
//
//   - It is ready by a line of its output, an answer to its health check, or one to a trial request.
//   - It hangs by the timer of its load or, once it is ready, by the pulse, which judges silent requests and refused connections.
//     The pulse only reports that (schedule.Condemned); the owner stops the process.
//   - It is dead by a line of its output or an answer to a trial request, and by its exit.
var transitions = []struct {
	to          State
	first, last State // in which this may be said
	by          []witness
}{
	{Loading, Preparing, Preparing, []witness{byLaunch}},
	{Warming, Loading, Loading, []witness{byOutput, byHealth, byTrial}},
	{Ready, Loading, Loading, []witness{byOutput, byHealth, byTrial}},
	{Ready, Warming, Warming, []witness{byWarmUp}},
	{Failing, Loading, Ready, []witness{byOutput}},
	{Stopping, Loading, Warming, []witness{byTimer, byTrial}},
	{Stopping, Preparing, Failing, []witness{byOwner}},
	{Gone, Preparing, Stopping, []witness{bySystem}},
}

// life is the state of a process, and how it came to it.
type life struct {
	ready  chan struct{} // closed when it is Ready
	exited chan struct{} // closed when it is Gone, and that is reported

	mu       sync.Mutex
	state    State
	before   State           // the one before Gone
	isLoaded bool            // it has been Ready
	why      string          // it is Failing, or stopped while it loads; empty: the owner says so
	order    schedule.Reason // why the owner stops it; empty: it doesn't
	ordered  time.Time       // when the owner said so
	refuses  bool            // it was seen to refuse connections
	end      LossKind        // how it exited; set before exited is closed
	killer   *time.Timer     // kills it once it is Failing; nil: it isn't
	killBy   time.Time
}

// become moves the process to a state if the witness may say that now.
func (l *life) become(to State, by witness, why string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.move(to, by, why)
}

// move is become with the lock held.
func (l *life) move(to State, by witness, why string) bool {
	for _, t := range transitions {
		if t.to != to || l.state < t.first || l.state > t.last || !slices.Contains(t.by, by) {
			continue
		}
		l.before, l.state, l.why = l.state, to, why
		if to == Ready {
			l.isLoaded = true
			close(l.ready)
		}
		return true
	}
	return false
}

// isLoading reports whether what the process writes concerns its load. What it wrote last is read when it is gone.
func (l *life) isLoading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.state
	if last == Gone {
		last = l.before
	}
	return !l.isLoaded && last < Stopping
}

func (l *life) wasReady() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isLoaded
}

// fail has a process that can't go on killed soon: when it has been silent for deathWait, since its output says why, and at the
// latest after deathMost. Only the first call counts.
func (l *life) fail(why string, kill func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == Gone && l.before < Failing { // its last line is read
		l.before, l.why = Failing, why
	}
	l.move(Failing, byOutput, why)
	if l.killer == nil && l.state != Gone {
		l.killBy = time.Now().Add(deathMost)
		l.killer = time.AfterFunc(deathWait, kill)
	}
}

func (l *life) heard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.killer != nil && l.state != Gone {
		l.killer.Reset(min(deathWait, time.Until(l.killBy)))
	}
}

// gone records that the process has exited: another may get its id. It returns the state that it was in, and why.
func (l *life) gone() (before State, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	why = l.why
	if l.move(Gone, bySystem, l.why) && l.killer != nil {
		l.killer.Stop()
	}
	return l.before, why
}

// stop records that the owner stops the process. It returns false if it is being stopped already.
func (l *life) stop(why schedule.Reason) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.order == "" {
		l.order, l.ordered = why, time.Now()
	}
	return l.move(Stopping, byOwner, "")
}

// loss returns the kind of loss for the requests of a process that its owner stops; false: it exits by itself.
func (l *life) loss() (LossKind, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.order == schedule.ForSilence && l.refuses:
		return Deaf, true
	case l.order == schedule.ForSilence:
		return Hung, true
	case l.order == schedule.ForClosing:
		return ShutDown, true
	default:
		return Unloaded, l.order != ""
	}
}

// Loss says what happened to an engine that failed a request.
type Loss struct {
	Kind LossKind
	// Alone says that no other request can have caused it.
	Alone bool
}

// LossKind is the kind of a Loss.
type LossKind uint8

// The kinds of losses.
const (
	Unharmed    LossKind = iota // the engine is alive; only this answer broke off
	Ended                       // the process exited by itself during the request
	Killed                      // another program ended it, of which no request is the reason
	OutOfMemory                 // the system killed it, since the machine had no memory left
	Hung                        // it hung, and is being stopped
	Deaf                        // it closed its listener, and is being stopped
	Unloaded                    // the supervisor stopped it for another reason
	ShutDown                    // the supervisor stopped it because the server shuts down
	Unreachable                 // a remote doesn't answer any more
	Silent                      // a remote has sent nothing for too long, and the request was given up
)

var lossNames = [...]string{
	Unharmed: "unharmed", Ended: "ended", Killed: "killed", OutOfMemory: "out of memory", Hung: "hung", Deaf: "deaf",
	Unloaded: "unloaded", ShutDown: "shut down",
	Unreachable: "unreachable", Silent: "silent",
}

func (k LossKind) String() string { return lossNames[k] }

// How long Lost waits for a process to exit after its connection broke: exitGrace, or on a busy machine lateExitGrace if the
// process doesn't answer its health check.
const (
	exitGrace     = time.Second
	lateExitGrace = 10 * time.Second
)

// Lost returns what happened to the engine after a request of a lease has failed with err. If the process has exited, that is reported by
// then. A live engine that refuses connections is stopped.
func (p *Process) Lost(ctx context.Context, lease uint64, err error) Loss {
	select {
	case <-p.ctx.Done():
	case <-ctx.Done():
		return Loss{}
	case <-time.After(exitGrace):
		if !isRefused(err) {
			if err = p.diesLate(ctx); err == nil || ctx.Err() != nil {
				return Loss{}
			}
		}
		if p.ctx.Err() == nil {
			if !isRefused(err) {
				return Loss{}
			}
			p.condemn(reasonRefuses)
		}
		<-p.ctx.Done() // the supervisor stops it, unless it has just exited
	}
	kind, isOrdered := p.life.loss()
	if !isOrdered {
		<-p.life.exited // follows at once
		kind = cmp.Or(p.life.end, Ended)
	}
	return Loss{kind, p.pulse.isAlone(lease)}
}

// diesLate checks the health of a process. If it doesn't answer, diesLate waits for its exit, at most lateExitGrace, and
// returns the error of the check.
func (p *Process) diesLate(ctx context.Context) error {
	_, _, err := p.pulse.get(p.pulse.healthPath())
	if err == nil {
		return nil
	}
	select {
	case <-p.ctx.Done():
	case <-ctx.Done():
	case <-time.After(lateExitGrace):
	}
	return err
}

func (p *Process) condemn(reason string) {
	p.life.mu.Lock()
	p.life.refuses = p.life.refuses || reason == reasonRefuses
	p.life.mu.Unlock()
	p.report(schedule.Condemned{Gen: p.gen, Reason: reason})
}

// exitError says how a process ended.
type exitError struct{ state *os.ProcessState }

func (e exitError) Error() string { return fmt.Sprintf("the engine ended with %s", e.state) }

func describeExit(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return errors.New("the engine ended")
	case errors.As(err, &exit):
		return exitError{exit.ProcessState}
	default:
		return fmt.Errorf("the engine ended: %w", err)
	}
}
