package supervisor

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/http1"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Lease is the right to send one request to an instance.
type Lease struct {
	Instance Info          // when the lease was granted
	LoadTime time.Duration // of the model, if the request waited for its load; else 0
	// RestoreTime is how long the request waited while states were restored, whether or not that worked.
	RestoreTime time.Duration

	supervisor *Supervisor
	upstream   upstream
	process    *process // nil: the lease is of a remote's instance
	grant      schedule.Grant
	owner      string         // of the request
	ttl        *time.Duration // see Demand
	keep       *Keep          // see Demand
	answered   atomic.Bool
	release    sync.Once

	pins   []pin           // the slots, if the instance isolates owners
	pinned atomic.Int32    // the number of pinned bodies
	only   [1]pin          // what pins is where there is one slot
	used   [1]schedule.Use // what uses begins with
}

// upstream is what a lease sends its requests to: a process, or a remote.
type upstream interface {
	// post sends a JSON body, and returns the answer when its header has come.
	post(ctx context.Context, l *Lease, path string, body Payload) (*http.Response, error)
	// lost is Lease.Lost.
	lost(ctx context.Context, l *Lease, err error) Loss
	// forget says that nothing more is sent on a lease.
	forget(l *Lease)
}

// Post sends a JSON body to the engine. The body of the answer breaks off when the engine is stopped or ctx ends.
func (l *Lease) Post(ctx context.Context, path string, body []byte) (*http.Response, error) {
	return l.PostPieces(ctx, path, Payload{Pieces: [][]byte{body}})
}

// PostPieces is Post of a body in several pieces.
func (l *Lease) PostPieces(ctx context.Context, path string, body Payload) (*http.Response, error) {
	return l.upstream.post(ctx, l, path, body)
}

func (p *process) post(ctx context.Context, l *Lease, path string, body Payload) (*http.Response, error) {
	sent := p.pulse.begin(ctx, l, body.Size())
	resp, err := p.do(ctx, path, body)
	if err != nil {
		sent.failed()
		sent.end()
		return nil, err
	}
	if body.pin != nil && resp.StatusCode == http.StatusOK {
		body.pin.used.Store(true) // the engine sends nothing before it has begun with the prompt
	}
	sent.answered(resp)
	resp.Body = sent
	return resp, nil
}

func (p *process) forget(l *Lease) { p.pulse.forget(l) }

// do sends a JSON body to the engine.
func (p *process) do(ctx context.Context, path string, body Payload) (*http.Response, error) {
	return p.transport.Do(ctx, &http1.Request{
		Method: http.MethodPost, Target: path, Host: engineHost, Header: p.launched.Load().header, Body: body.Body(),
	})
}

// Answered records that the engine has answered a request completely. Release then clears the model's failures.
func (l *Lease) Answered() { l.answered.Store(true) }

// Release returns the slots. Only the first call counts.
func (l *Lease) Release() {
	l.release.Do(func() {
		l.upstream.forget(l)
		tokenBytes := l.judge()
		l.supervisor.send(schedule.Returned{
			Gen: l.grant.Gen, Slots: l.grant.Slots,
			Answered: l.answered.Load(), Key: l.Instance.Spec.Model.Key,
			Waiter: l.grant.Waiter, Used: l.uses(), TokenBytes: tokenBytes,
		})
	})
}

// judge tells what became of restored states, and how fast prompts were processed. It returns how many bytes the state of a token
// has; 0: unknown.
func (l *Lease) judge() float64 {
	keeper := l.keeper()
	if keeper == nil {
		return 0
	}
	for i := range l.pins {
		p := &l.pins[i]
		use := p.told()
		keeper.shelf.Processed(use.Prompt-use.Cached, use.PromptTime)
		if p.judge != nil && use.Prompt > 0 {
			p.judge(use)
		}
	}
	return keeper.shelf.Rates().Bytes
}

// keeper returns what saves the slots of the lease; nil: nothing does.
func (l *Lease) keeper() *keeper {
	if l.process == nil {
		return nil
	}
	launched := l.process.launched.Load()
	if launched == nil {
		return nil
	}
	return launched.keeper
}
