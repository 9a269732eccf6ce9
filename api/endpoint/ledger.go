package endpoint

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
)

// ledger notes what becomes of a call, for metrics, the access log and traces, which are told once, at the end.
type ledger struct {
	Mu         sync.Mutex // upstream requests of one call may run at a time
	Summary    record.Summary
	ToModel    bool      // the request asks a model
	waited     time.Time // until when the waits for slots are counted
	isReported bool      // or another call tells it

	generated int           // tokens whose time is known
	took      time.Duration // that they took

	Tracer  trace.Tracer      // nil: nobody traces the request
	begunBy trace.SpanContext // of a response in the background: the span of the request that began it
}

// Leased notes a wait for a lease, nil if there was none, that ends now. Of waits at the same time, each moment counts once.
func (l *ledger) Leased(ctx context.Context, begun time.Time, lease *supervisor.Lease) {
	now := time.Now()
	l.Mu.Lock()
	defer l.Mu.Unlock()
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
		l.Summary.Instance = lease.Instance.ID
	}
	queue := wait - restore - load
	l.Summary.Queue += queue
	l.Summary.Load += load
	l.Summary.Restore += restore
	for _, part := range []struct { // in the order in which it has to go, whatever was first
		name string
		took time.Duration
	}{{"queue", queue}, {"load", load}, {"restore", restore}} {
		to := from.Add(part.took)
		if part.took > 0 {
			l.Span(ctx, part.name, from, to)
		}
		from = to
	}
}

func (l *ledger) Measured(tokens int, t translate.Timings) {
	if tokens < 2 || t.PredictedPerSecond <= 0 {
		return
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.generated += tokens
	l.took += time.Duration(float64(tokens) / t.PredictedPerSecond * float64(time.Second))
}

func (l *ledger) Called() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Summary.Tools++
}

// Failed notes the error that the client is told. The first counts.
func (l *ledger) Failed(e *translate.Error) {
	word := e.Kind.Word()
	if e.Kind == translate.KindUnavailable { // which has many causes, and each of its codes is ours
		word = e.EffectiveCode()
	}
	l.Summary.Outcome = cmp.Or(l.Summary.Outcome, word)
}

func introduce(c *Call, s *record.Summary) {
	s.ID, s.Arrived = c.ID, c.Arrived
	s.Dialect, s.Method, s.Path = c.Dialect.Name, c.Request.Method, ShownPath(c.Request)
	s.Owner, s.Inspected = c.Identity.ID(), c.Inspected != nil
	if c.Identity != nil {
		s.Token, s.TokenName = c.Identity.Token, c.Identity.Name
	}
}

// BeginRequest notes that a request asks a model, which is known now.
func (c *Call) BeginRequest() {
	if c.InFlight != nil {
		return
	}
	introduce(c, &c.Ledger.Summary)
	c.InFlight = c.Node.Record.Requests.Begin(&c.Ledger.Summary)
}

func summarize(c *Call) *record.Summary {
	s := &c.Ledger.Summary
	introduce(c, s)
	s.Duration, s.Outcome = time.Since(c.Arrived), cmp.Or(s.Outcome, record.OutcomeOK)
	if n := c.Ledger.generated; n > 0 {
		s.PerToken = c.Ledger.took / time.Duration(n)
	}
	return s
}

// Settle tells the summary, once. Of a response in the background, the request that began it isn't told again.
func (c *Call) Settle() {
	if c.Ledger.isReported {
		return
	}
	c.Ledger.isReported = true
	s := summarize(c)
	n := c.Node
	if n == nil && s.Outcome != translate.KindInternal.Word() { // finding it may be what failed
		n = c.Site.RunningNode(c.Request.Context())
	}
	if n != nil {
		n.Record.Traffic.Observe(s, c.Ledger.ToModel)
	}
	c.Inspected.End(s)
	traceEnd(c, s)
	if c.Ledger.ToModel {
		kept := logEnd(c, s)
		if n != nil {
			n.Record.Requests.End(c.InFlight, kept)
		}
	}
	if c.Site.Ended != nil && c.Background == nil && !c.IsMessage {
		c.Site.Ended(c.Request.Context(), s)
	}
}

// logEnd adds a request's summary to the records at debug level, where it is found by the request's id, and returns the copy.
func logEnd(c *Call, s *record.Summary) *record.Summary {
	kept := &struct { // one allocation
		record logs.Record
		ended  endedRequest
	}{ended: endedRequest(*s)} // a copy, since the summary is a part of the call, with all that it refers to
	kept.record = logs.Record{
		Time: time.Now(), Level: slog.LevelDebug, Logger: "lm", Message: "a request ended", Source: &kept.ended,
		Model: s.Model, Instance: s.Instance, Request: s.ID,
	}
	c.Site.Logs.Add(&kept.record)
	return (*record.Summary)(&kept.ended)
}

// endedRequest has the fields of the record of a request's end. Most of these records are never read, so only reading one encodes it.
type endedRequest record.Summary

func (s *endedRequest) Attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("request", s.ID), slog.String("model", s.Model), slog.String("instance", s.Instance), slog.String("token", s.Token),
		slog.String("path", s.Path), slog.Int("status", s.Status), slog.String("outcome", s.Outcome), slog.Duration("duration", s.Duration),
		slog.Duration("queue", s.Queue), slog.Duration("load", s.Load), slog.Duration("restore", s.Restore),
		slog.Duration("first_token", s.FirstToken), slog.Int("input_tokens", s.Usage.Prompt), slog.Int("cached_tokens", s.Usage.Cached),
		slog.Int("output_tokens", s.Usage.Completion), slog.Int("tool_calls", s.Tools),
	}
	return slices.DeleteFunc(attrs, func(a slog.Attr) bool {
		return a.Value.Equal(slog.StringValue("")) || a.Value.Equal(slog.IntValue(0)) || a.Value.Equal(slog.DurationValue(0))
	})
}

const tracerName = "github.com/lmcaddy/lmcaddy"

// BeginTrace finds out whether the context has a span that is recorded. No engine or MCP server is told of the trace.
func BeginTrace(c *Call) {
	if span := trace.SpanFromContext(c.Request.Context()); span.IsRecording() {
		c.Ledger.Tracer = span.TracerProvider().Tracer(tracerName)
	}
}

// traceRun begins the trace of a response in the background, with a link to the request, whose span has ended by then.
func (l *ledger) traceRun(ctx context.Context, id string) context.Context {
	if l.Tracer == nil {
		return ctx
	}
	ctx, _ = l.Tracer.Start(ctx, "response", trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: l.begunBy}),
		trace.WithAttributes(attribute.String("lm.response_id", id)))
	return ctx
}

func (l *ledger) Span(ctx context.Context, name string, from, to time.Time, attributes ...attribute.KeyValue) {
	if l.Tracer == nil {
		return
	}
	_, span := l.Tracer.Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(to))
}

// traceEnd adds what is known in the end to the span that the request came with.
func traceEnd(c *Call, s *record.Summary) {
	if c.Ledger.Tracer == nil {
		return
	}
	span := trace.SpanFromContext(c.Request.Context())
	span.SetAttributes(
		attribute.String("lm.request_id", s.ID), attribute.String("lm.dialect", s.Dialect), attribute.String("lm.outcome", s.Outcome),
		attribute.String("gen_ai.request.model", s.Model), attribute.String("lm.owner", s.Owner),
		attribute.Int("gen_ai.usage.input_tokens", s.Usage.Prompt), attribute.Int("gen_ai.usage.output_tokens", s.Usage.Completion),
	)
	if c.Background != nil {
		span.End() // the other one is Caddy's
	}
}
