package endpoint

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/translate"
)

// Call is one request that is being answered.
type Call struct {
	Site       *Site
	Writer     http.ResponseWriter
	Request    *http.Request
	Node       *node.Node
	ID         string // of the request
	Arrived    time.Time
	Dialect    *Dialect
	Param      string // the part of the path that the route leaves open
	Begun      bool   // the answer's header has been sent
	Stream     *Stream
	incoming   timely            // the request's body, while it is read
	Held       *heldBuffer       // all of it; nil before
	read       bool              // the body has been read to its end
	Claim      access.BodyClaim  // the memory that is counted for the body
	Identity   *access.Identity  // nil: anybody, on a site without authentication
	Running    *access.Request   // nil: the request has no token, or that isn't known yet
	followed   []*access.Request // of each scope that the request needs
	admitted   func()            // gives the request's place among those of its token back; nil: it has none
	Background *runs.Run         // that the call makes the answer of, without a request; nil: it answers one
	IsMessage  bool              // the request came as a message on the connection of another
	// answerMessage answers such a request; a field, since endpoints can't refer to what finds endpoints.
	AnswerMessage func(http.ResponseWriter, *http.Request)
	Form          func(contentType string, form []byte) ([]byte, *translate.Error) // makes JSON of the body; nil: it is JSON
	Ends          []func()                                                         // called when the request ends

	Ledger    ledger
	InFlight  *record.InFlight        // nil: it isn't known yet which model the request asks, or it asks none
	Inspected *record.Inspection      // nil: the request isn't recorded whole
	Cancel    context.CancelCauseFunc // ends the request, whose context it is
	Client    client
}

// NewCall returns the call for a request. Its Request has a context of its own, which Cancel ends, and which has its id.
func NewCall(site *Site, d *Dialect, w http.ResponseWriter, r *http.Request) *Call {
	c := &Call{Site: site, Dialect: d, Writer: w, ID: requestID(r), Arrived: time.Now()}
	ctx, cancel := context.WithCancelCause(logs.WithRequest(r.Context(), c.ID))
	c.Request, c.Cancel, c.Client.call = r.WithContext(ctx), cancel, c
	return c
}

// End gives back what the call has taken, and tells how it went.
func (c *Call) End() {
	defer c.Settle()
	for _, end := range c.Ends {
		end()
	}
	if c.admitted != nil {
		c.admitted()
	}
	if c.Held != nil {
		c.Held.Release()
	}
	c.Claim.Release()
}

// Panicked logs what made the server panic. It has to be called on the stack of the panic.
func (c *Call) Panicked(fault any) *translate.Error {
	p := AsPanic(fault)
	c.Site.Log.Error("a request made the server panic",
		"request", c.ID, "path", c.Request.URL.Path, "fault", p.Fault, "stack", string(p.stack))
	e := ourFault(c)
	c.Ledger.Failed(e)
	return e
}

// NewID returns a new id. It can't be guessed in practice, but nothing depends on that: what it names is found only by its owner.
func NewID(prefix string) string {
	id := append(make([]byte, 0, 48), prefix...)
	for range 2 { // 128 bits
		for n, i := rand.Uint64(), 0; i < 13; i++ { //nolint:gosec // of the runtime's generator, which is quicker
			id = append(id, "abcdefghijklmnopqrstuvwxyz234567"[n&31])
			n >>= 5
		}
	}
	return string(id)
}

// UntilExit returns the request's context, which also ends when the server begins to shut down.
func UntilExit(c *Call) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(c.Request.Context())
	go func() {
		select {
		case <-c.Site.Exiting:
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// requestID is the id that the request was given before, or that the client sent, if it is fit to be logged, or else a new one.
func requestID(r *http.Request) string {
	if id := logs.RequestOf(r.Context()); id != "" {
		return id
	}
	id := r.Header.Get("X-Request-Id")
	fit := len(id) > 0 && len(id) <= 128 && strings.IndexFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
	if fit {
		return id
	}
	return NewID("req_")
}

// Panic is a panic, with its stack, on the way to the goroutine that answers, where it ends one request and not the process.
type Panic struct {
	Fault any
	stack []byte
}

// AsPanic wraps what was recovered. It has to be called on the stack of the panic.
func AsPanic(fault any) *Panic {
	if p, ok := fault.(*Panic); ok {
		return p
	}
	return &Panic{fault, debug.Stack()}
}

// Again continues the panic.
func (p *Panic) Again() {
	if err, ok := p.Fault.(error); ok && err == http.ErrAbortHandler { //nolint:errorlint // net/http compares it like that
		panic(err)
	}
	panic(p)
}

// QueryBool is a parameter of the query; false if it isn't given.
func QueryBool(c *Call, name string) (bool, error) {
	given := c.Request.URL.Query().Get(name)
	is, err := strconv.ParseBool(given)
	if err != nil && given != "" {
		return false, translate.Invalid("invalid_type", name, `"`+name+`" must be true or false.`)
	}
	return is, nil
}

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
