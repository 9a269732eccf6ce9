package api

import (
	"context"
	"encoding/json"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
)

// tracerName names the spans' origin.
const tracerName = "github.com/lmcaddy/lmcaddy"

// beginTrace finds out whether the request is traced: whether its context has a span that is recorded. The spans below that one are
// made here. Nothing of the trace is passed on to an engine or an MCP server.
func (c *call) beginTrace() {
	if span := trace.SpanFromContext(c.r.Context()); span.IsRecording() {
		c.ledger.tracer = span.TracerProvider().Tracer(tracerName)
	}
}

// traceRun begins the span of a response in the background, and returns a context with it. It is a trace of its own, with a link to
// the request: that has ended long before, and with it its span.
func (c *call) traceRun(ctx context.Context, id string) context.Context {
	if c.ledger.tracer == nil {
		return ctx
	}
	ctx, _ = c.ledger.tracer.Start(ctx, "response", trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: c.ledger.begunBy}),
		trace.WithAttributes(attribute.String("lm.response_id", id)))
	return ctx
}

// span adds a span that has ended.
func (c *call) span(name string, from, to time.Time, attributes ...attribute.KeyValue) {
	if c.ledger.tracer == nil {
		return
	}
	_, span := c.ledger.tracer.Start(c.r.Context(), name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(to))
}

// traceWaits adds the spans of a wait for a lease: in the order in which it has to go, whatever was first.
func (c *call) traceWaits(from time.Time, queue, load, restore time.Duration) {
	if c.ledger.tracer == nil {
		return
	}
	for _, part := range []struct {
		name string
		took time.Duration
	}{{"queue", queue}, {"load", load}, {"restore", restore}} {
		to := from.Add(part.took)
		if part.took > 0 {
			c.span(part.name, from, to)
		}
		from = to
	}
}

// traceEngine adds the span of an upstream answer, of which first is the time of the first token; zero: unknown.
func (c *call) traceEngine(begun, first time.Time, resp *engineResponse, u translate.Usage, t translate.Timings, err error) {
	if c.ledger.tracer == nil {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.String("lm.instance", resp.lease.Instance.ID),
		attribute.Int("gen_ai.usage.input_tokens", u.Prompt), attribute.Int("lm.cached_tokens", u.Cached),
		attribute.Int("gen_ai.usage.output_tokens", u.Completion),
	}
	if !first.IsZero() {
		attributes = append(attributes, attribute.Float64("lm.time_to_first_token", first.Sub(begun).Seconds()))
	}
	if t.PredictedPerSecond > 0 {
		attributes = append(attributes, attribute.Float64("lm.tokens_per_second", t.PredictedPerSecond))
	}
	_, span := c.ledger.tracer.Start(c.r.Context(), "engine", trace.WithTimestamp(begun), trace.WithAttributes(attributes...))
	if err != nil {
		span.SetStatus(codes.Error, "the engine's answer isn't complete")
	}
	span.End()
}

// traceEnd adds what is known in the end to the span that the request came with.
func (c *call) traceEnd(s *node.Summary) {
	if c.ledger.tracer == nil {
		return
	}
	span := trace.SpanFromContext(c.r.Context())
	span.SetAttributes(
		attribute.String("lm.request_id", s.ID), attribute.String("lm.dialect", s.Dialect), attribute.String("lm.outcome", s.Outcome),
		attribute.String("gen_ai.request.model", s.Model), attribute.String("lm.owner", s.Owner),
		attribute.Int("gen_ai.usage.input_tokens", s.Usage.Prompt), attribute.Int("gen_ai.usage.output_tokens", s.Usage.Completion),
	)
	if c.run != nil {
		span.End() // the other one is Caddy's
	}
}

// countedServer is an MCP server whose calls are counted, and traced.
type countedServer struct {
	mcploop.Server

	call  *call
	label string
}

// Call calls a tool. A span has its name, but neither arguments nor results.
func (s countedServer) Call(ctx context.Context, tool string, args json.RawMessage) (mcploop.Result, error) {
	begun := time.Now()
	s.call.ledger.called()
	result, err := s.Server.Call(ctx, tool, args)
	if s.call.ledger.tracer != nil {
		s.call.span("tool", begun, time.Now(), attribute.String("lm.mcp_server", s.label), attribute.String("gen_ai.tool.name", tool),
			attribute.Bool("lm.failed", err != nil || result.IsError))
	}
	return result, err
}
