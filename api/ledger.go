package api

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
)

// ledger notes what becomes of a request, for metrics, the access log and traces. It is a part of the call, and told once, when the
// request has ended.
type ledger struct {
	mu      sync.Mutex // upstream requests of one call may run at a time
	of      node.Summary
	toModel bool      // the request asks a model
	waited  time.Time // until when the waits for slots are counted
	isTold  bool      // or another call tells it

	generated int           // tokens whose time is known
	took      time.Duration // that they took

	tracer  trace.Tracer      // nil: nobody traces the request
	begunBy trace.SpanContext // of a response in the background: the span of the request that began it
}

// leased notes the wait for a lease that began at a time and ends now. lease is nil if there was none. Of waits at the same time, each
// moment counts once.
func (c *call) leased(begun time.Time, lease *supervisor.Lease) {
	l, now := &c.ledger, time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	from := begun
	if l.waited.After(from) {
		from = l.waited
	}
	l.waited = now
	wait := max(0, now.Sub(from))
	var restore, load time.Duration
	if lease != nil {
		restore = min(wait, lease.RestoreTime)
		load = min(wait-restore, lease.LoadTime)
		l.of.Instance = lease.Instance.ID
	}
	queue := wait - restore - load
	l.of.Queue += queue
	l.of.Load += load
	l.of.Restore += restore
	c.traceWaits(from, queue, load, restore)
}

// measured notes the speed of an upstream answer.
func (l *ledger) measured(tokens int, t translate.Timings) {
	if tokens < 2 || t.PredictedPerSecond <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.generated += tokens
	l.took += time.Duration(float64(tokens) / t.PredictedPerSecond * float64(time.Second))
}

// called notes a call of a tool.
func (l *ledger) called() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of.Tools++
}

// failed notes the error that the client is told. The first counts.
func (l *ledger) failed(e *translate.Error) {
	l.of.Outcome = cmp.Or(l.of.Outcome, outcomeOf(e))
}

// outcomeOf is an error in one of few words.
func outcomeOf(e *translate.Error) string {
	if e.Kind == translate.KindUnavailable {
		return e.EffectiveCode() // the kind has many causes, and each of its codes is ours
	}
	return e.Kind.Word()
}

// introduce sets what is known of a request from the start.
func (c *call) introduce(s *node.Summary) {
	s.ID, s.Arrived = c.id, c.arrived
	s.Dialect, s.Method, s.Path = c.dialect.name, c.r.Method, shownPath(c.r)
	s.Owner, s.Inspected = c.who.ID(), c.inspected != nil
	if c.who != nil {
		s.Token, s.TokenName = c.who.Token, c.who.Name
	}
}

// beginRequest notes that a request asks a model, which is known now.
func (c *call) beginRequest() {
	if c.underway != nil {
		return
	}
	c.introduce(&c.ledger.of)
	c.underway = c.node.BeginRequest(&c.ledger.of)
}

// summarize completes the summary.
func (c *call) summarize() *node.Summary {
	l := &c.ledger
	s := &l.of
	c.introduce(s)
	s.Duration = time.Since(c.arrived)
	if l.generated > 0 {
		s.PerToken = l.took / time.Duration(l.generated)
	}
	if s.Outcome == "" {
		s.Outcome = node.OutcomeOK
	}
	return s
}

// settle tells the summary, once. Of a response in the background, the request that began it isn't told again.
func (c *call) settle() {
	if c.ledger.isTold {
		return
	}
	c.ledger.isTold = true
	s := c.summarize()
	n := c.node
	if n == nil && s.Outcome != translate.KindInternal.Word() { // finding it may be what failed
		n = c.site.runningNode(c.r.Context())
	}
	if n != nil {
		n.Observe(s, c.ledger.toModel)
	}
	c.inspected.Ended(s)
	c.traceEnd(s)
	if c.ledger.toModel {
		kept := c.logEnd(s)
		if n != nil {
			n.EndRequest(c.underway, kept)
		}
	}
	if c.site.Ended != nil && c.run == nil && !c.isMessage {
		c.site.Ended(c.r.Context(), s)
	}
}

// runningNode returns the node, or nil if there is none yet.
func (a *site) runningNode(ctx context.Context) *node.Node {
	if a.Node == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel() // it isn't waited for
	n, err := a.Node(ctx)
	if err != nil {
		return nil
	}
	return n
}
