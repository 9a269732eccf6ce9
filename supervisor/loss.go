package supervisor

import (
	"context"
	"net/http"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
)

// Loss is what became of an engine that failed a request.
type Loss struct {
	Kind LossKind
	// Alone says that nobody else's request can have been the reason.
	Alone bool
}

// LossKind classes a Loss by what the request has to do with it.
type LossKind uint8

// The kinds of losses.
const (
	Unharmed LossKind = iota // the engine lives; only this answer broke off
	Ended                    // the process ended amid the request
	Hung                     // it got no further, and is ended
	Deaf                     // it had closed its listener, and is ended
	Unloaded                 // it was ended by us, for a reason of ours
	ShutDown                 // it was ended since the server shuts down
)

var lossNames = [...]string{
	Unharmed: "unharmed", Ended: "ended", Hung: "hung", Deaf: "deaf", Unloaded: "unloaded", ShutDown: "shut down",
}

func (k LossKind) String() string { return lossNames[k] }

// How long Lost waits. A process whose connection broke because it died has ended soon. On a busy machine that may take
// longer; until then the process answers no questions.
const (
	exitGrace     = time.Second
	lateExitGrace = 10 * time.Second
)

// Lost tells, after a request has failed with err, what became of the engine. Where it is gone, the supervisor knows, and
// the next Acquire gives another instance. An engine that refuses connections though it lives is ended.
func (l *Lease) Lost(ctx context.Context, err error) Loss {
	p := l.process
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
			p.pulse.refuse()
		}
		<-p.ctx.Done() // the supervisor ends it, unless it has just ended by itself
	}
	loss := Loss{Ended, p.pulse.isAlone(l)}
	why := p.ending.Load()
	switch {
	case why == nil:
		<-p.exited // comes next
	case *why == ForSilence && p.pulse.isDeaf():
		loss.Kind = Deaf
	case *why == ForSilence:
		loss.Kind = Hung
	case *why == ForClosing:
		loss.Kind = ShutDown
	default:
		loss.Kind = Unloaded
	}
	return loss
}

// diesLate waits until a process that doesn't answer has ended, but no longer than that may take. The error is why it doesn't
// answer; nil: it does.
func (p *process) diesLate(ctx context.Context) error {
	_, _, err := p.pulse.get(p.pulse.engine.Health())
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

// newPulse makes the watch over a process that is launched with a Spec.
func (p *process) newPulse(engine Process, spec *Spec) *pulse {
	batch := spec.BatchSize
	if batch == 0 {
		batch = llamaBatch
	}
	return &pulse{
		engine: engine, batch: min(batch, max(1, spec.ContextLength*spec.Parallel)),
		slow:  spec.Model.Type == catalog.TypeLLM && spec.Model.Projector != "",
		stall: p.options.stall, ctx: p.ctx, ask: p.ask,
		condemn: func(reason string) { p.report(Condemned{p.gen, reason}) },
	}
}

// ask sends a GET request to a path of the engine's.
func (p *process) ask(ctx context.Context, path string) (*http.Response, error) {
	launched := p.launched.Load()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, engineURL(path), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+launched.apiKey)
	return p.client.Do(req)
}
