package endpoint

import (
	"bytes"
	"context"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/runs"
)

// Detach returns a call that goes on when the request has been answered. It takes over what the request holds, and has to be ended.
func (c *Call) Detach() *Call {
	d := &Call{
		Site: c.Site, Node: c.Node, ID: c.ID, Arrived: c.Arrived, Dialect: c.Dialect, Identity: c.Identity,
		Held: c.Held, read: c.read, Claim: c.Claim, admitted: c.admitted, followed: c.followed,
	}
	d.Client.call = d
	c.Held, c.Claim, c.admitted = nil, access.BodyClaim{}, nil
	d.Ledger.Summary, d.Ledger.ToModel, c.Ledger.ToModel = c.Ledger.Summary, c.Ledger.ToModel, false // it is counted when it is answered
	d.Inspected, c.Inspected = c.Inspected, nil
	d.InFlight, c.InFlight = c.InFlight, nil
	d.Ledger.Tracer, d.Ledger.begunBy = c.Ledger.Tracer, trace.SpanContextFromContext(c.Request.Context())
	// Of the request, only what errors are logged with is kept.
	d.Request = &http.Request{Method: c.Request.Method, URL: c.Request.URL, Header: http.Header{}}
	if c.Site.Underway != nil {
		d.Ends = append(d.Ends, c.Site.Underway())
	}
	return d
}

// TakeBack ends a detached call that doesn't begin: the request's own error is told instead.
func (c *Call) TakeBack(d *Call) {
	c.Ledger.ToModel, d.Ledger.isReported = d.Ledger.ToModel, true
	c.Inspected, d.Inspected = d.Inspected, nil
	c.InFlight, d.InFlight = d.InFlight, nil
	d.End()
}

// Attach makes a detached call answer to the log of a run, with the run's context. That ends with the rights of the request's token, too.
func (c *Call) Attach(ctx context.Context, run *runs.Run) {
	c.Background = run
	c.Writer = Inspecting(c, &logWriter{run: run, header: http.Header{}})
	ctx, c.Cancel = context.WithCancelCause(c.Ledger.traceRun(WithIdentity(ctx, c.Identity), run.ID))
	requests := c.followed
	c.followed = nil
	for _, request := range requests {
		var running *access.Request
		ctx, running = request.Continue(ctx)
		if c.Running == nil {
			c.Running = running
		}
		c.followed = append(c.followed, running)
		c.Ends = append(c.Ends, running.End)
	}
	c.Request = c.Request.WithContext(ctx)
}

// logWriter writes a stream to the log of a run, event by event, so that an event's number is its place there. Comments are left out.
type logWriter struct {
	run    *runs.Run
	header http.Header
}

var eventEnd = []byte("\n\n")

func (w *logWriter) Header() http.Header { return w.header }

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
