package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/http1"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

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
	timer := time.NewTimer(exitGrace)
	defer timer.Stop()
	select {
	case <-p.ctx.Done():
	case <-ctx.Done():
		return Loss{}
	case <-timer.C:
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
	timer := time.NewTimer(lateExitGrace)
	defer timer.Stop()
	select {
	case <-p.ctx.Done():
	case <-ctx.Done():
	case <-timer.C:
	}
	return err
}

// newPulse returns the pulse of a process that is launched with spec.
func (p *Process) newPulse(spec *schedule.Spec) *pulse {
	batch := BatchSize(p.program, spec)
	if batch == 0 {
		batch = spec.ContextLength * spec.Parallel // it may be all that there is
	}
	return &pulse{
		engine: p.program, batch: max(1, batch),
		slow:  spec.Model.Type == catalog.TypeLLM && spec.Model.Projector != "",
		stall: p.host.stall, ctx: p.ctx, ask: p.ask, usage: p.usage,
		condemn: p.condemn,
	}
}

// condemn reports that the process hangs.
func (p *Process) condemn(reason string) {
	p.life.mu.Lock()
	p.life.refuses = p.life.refuses || reason == reasonRefuses
	p.life.mu.Unlock()
	p.report(schedule.Condemned{Gen: p.gen, Reason: reason})
}

// ask sends a GET request to the engine.
func (p *Process) ask(ctx context.Context, path string) (*http.Response, error) {
	return p.transport.Do(ctx, &http1.Request{Method: http.MethodGet, Target: path, Host: engineHost, Header: p.launched.Load().header[:1]})
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

// kindOfEnd returns how a process exited from a state. err is that of its exit.
func (p *Process) kindOfEnd(from State, err error) LossKind {
	switch {
	case from >= Failing: // then it was killed by us
		return Ended
	case wasKilled(err) && oomKills() > p.oomKills.Load():
		return OutOfMemory
	case wasEndedByOthers(err):
		return Killed
	default:
		return Ended
	}
}
