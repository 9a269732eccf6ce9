package api

import (
	"bytes"
	"context"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"github.com/lmcaddy/lmcaddy/node"
)

// detach returns a call that goes on when the request has been answered. It takes over the memory of the body, and the request's
// place among those of its token. It has no writer and no context before attach, and has to be ended.
func (c *call) detach() *call {
	d := &call{
		site: c.site, node: c.node, id: c.id, arrived: c.arrived, dialect: c.dialect, who: c.who,
		held: c.held, read: c.read, claim: c.claim, admitted: c.admitted, followed: c.followed,
	}
	c.held, c.claim, c.admitted = nil, node.BodyClaim{}, nil
	d.ledger.of, d.ledger.toModel, c.ledger.toModel = c.ledger.of, c.ledger.toModel, false // it is counted when it is answered
	d.inspected, c.inspected = c.inspected, nil
	d.underway, c.underway = c.underway, nil
	d.ledger.tracer, d.ledger.begunBy = c.ledger.tracer, trace.SpanContextFromContext(c.r.Context())
	// Of the request, only what errors are logged with is kept.
	d.r = &http.Request{Method: c.r.Method, URL: c.r.URL, Header: http.Header{}}
	if c.site.Underway != nil {
		d.ends = append(d.ends, c.site.Underway())
	}
	return d
}

// takeBack ends a detached call that doesn't begin: the request's own error is told instead.
func (c *call) takeBack(d *call) {
	c.ledger.toModel, d.ledger.isTold = d.ledger.toModel, true
	c.inspected, d.inspected = d.inspected, nil
	c.underway, d.underway = d.underway, nil
	d.end()
}

// attach makes a detached call answer to the log of a run, with the run's context. That ends with the rights of the request's token, too.
func (c *call) attach(ctx context.Context, run *node.Run) {
	c.run = run
	c.w = c.inspecting(&logWriter{run: run, header: http.Header{}})
	ctx, c.cancel = context.WithCancelCause(c.traceRun(WithIdentity(ctx, c.who), run.ID))
	requests := c.followed
	c.followed = nil
	for _, request := range requests {
		var running *node.Running
		ctx, running = request.Continue(ctx)
		if c.running == nil {
			c.running = running
		}
		c.followed = append(c.followed, running)
		c.ends = append(c.ends, running.End)
	}
	c.r = c.r.WithContext(ctx)
}

// logWriter writes a stream of events to the log of a run, event by event: so the number of an event is its place in the log. Comments,
// which keep connections alive, are for each reader's connection.
type logWriter struct {
	run    *node.Run
	header http.Header
}

var eventEnd = []byte("\n\n")

// Header returns a header that nobody sees.
func (w *logWriter) Header() http.Header { return w.header }

// WriteHeader does nothing.
func (w *logWriter) WriteHeader(int) {}

// Write appends events, which have to be whole.
func (w *logWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := len(p)
		if i := bytes.Index(p, eventEnd); i >= 0 {
			end = i + len(eventEnd)
		}
		if p[0] != ':' {
			w.run.Append(p[:end])
		}
		p = p[end:]
	}
	return n, nil
}
