package endpoint

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/lmcaddy/lmcaddy/node/record"
)

// tracerName names the spans' origin.
const tracerName = "github.com/lmcaddy/lmcaddy"

// BeginTrace finds out whether the request is traced: whether its context has a span that is recorded. The spans below that one are
// made here. Nothing of the trace is passed on to an engine or an MCP server.
func BeginTrace(c *Call) {
	if span := trace.SpanFromContext(c.Request.Context()); span.IsRecording() {
		c.Ledger.Tracer = span.TracerProvider().Tracer(tracerName)
	}
}

// traceRun begins the span of a response in the background, and returns a context with it. It is a trace of its own, with a link to
// the request: that has ended long before, and with it its span.
func (l *ledger) traceRun(ctx context.Context, id string) context.Context {
	if l.Tracer == nil {
		return ctx
	}
	ctx, _ = l.Tracer.Start(ctx, "response", trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: l.begunBy}),
		trace.WithAttributes(attribute.String("lm.response_id", id)))
	return ctx
}

// Span adds a span that has ended.
func (l *ledger) Span(ctx context.Context, name string, from, to time.Time, attributes ...attribute.KeyValue) {
	if l.Tracer == nil {
		return
	}
	_, span := l.Tracer.Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(to))
}

// traceWaits adds the spans of a wait for a lease: in the order in which it has to go, whatever was first.
func (l *ledger) traceWaits(ctx context.Context, from time.Time, queue, load, restore time.Duration) {
	if l.Tracer == nil {
		return
	}
	for _, part := range []struct {
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
