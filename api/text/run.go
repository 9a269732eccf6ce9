// Package text has what is the same for generated text in every dialect: a request to a model ([Request]), the way to its answer ([Run]),
// what happens when an engine is lost on that way, and the rounds of an answer with tools.
package text

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Run is a request for generated text on its way to its answer. The answer may take several upstream requests, one after the
// other or at a time, all with one stream to the client. What is the same for every dialect is decided here: when a request
// is sent again, what is counted as used, and how a stream is written. A [Reply] is what dialects differ in.
type Run struct {
	Call     *endpoint.Call
	Request  *Request
	Stream   *endpoint.Stream        // nil for an answer in one piece
	Gathers  bool                    // the answer is gathered even if it is streamed, since it is to be stored
	OnLeased func(*supervisor.Lease) // called with each lease before anything is sent on it; nil: nothing is

	Beginning *Beginning // the stored beginning of the answer; nil: the client isn't told of it before the end

	Mu       sync.Mutex       // held while a reply makes what the client sees
	frames   []byte           // the buffer of tell
	Instance *supervisor.Info // that answers; nil: none does yet
	First    time.Duration    // from the request's arrival to the first token; 0: there is none yet
	spent    []partUsage
	only     [1]partUsage // what spent begins with: most runs have one part
}

// Part is one upstream request of a run: for the whole answer, for one of its choices, or for a round of it.
type Part struct {
	Index  int // among the run's parts
	Prompt int // the number of its prompt; parts with the same prompt share its tokens
	IsFree bool
	Chain  prefix.Chain // of its prompt; nil: that of the demand
	Reply  Reply
	Task   Task
}

type partUsage struct {
	index, prompt int // of the part
	translate.Usage
}

// Reply is how a dialect tells a client the answer to one upstream request.
type Reply interface {
	// Begin returns what makes the client's stream of the engine's: often [Run.ByEvents]. Of an answer in one piece, it gathers
	// the events and makes nothing. decoder decodes the engine's answer. Where an engine is lost and the client has seen
	// nothing, Begin is called again.
	Begin(ctx context.Context, resp *Response, decoder *wire.Recorder) (wire.Rewriter, error)

	// IsSeen reports whether a client that streams has seen too much to begin again. sent tells whether it was sent anything.
	IsSeen(sent bool) bool
}

// passer is a reply that may pass an engine's own stream on, which its rewriter then reads. Begin gets no recorder.
type passer interface {
	Passes(resp *Response) bool
}

// Gatherer is the encoder of an answer in one piece, which makes nothing of single events.
type Gatherer func(translate.Event)

// Append gathers the event.
func (g Gatherer) Append(dst []byte, ev translate.Event) []byte {
	g(ev)
	return dst
}

// NewRun begins to answer a request, which was accepted. From now on a stream is kept alive. The run has to be closed.
func NewRun(rq *Request) *Run {
	r := &Run{Call: rq.Call, Request: rq}
	r.spent = r.only[:0]
	if rq.Streams {
		r.Stream = rq.Call.NewStream()
	}
	return r
}

// IsSeen reports whether the client was sent anything of an answer.
func (r *Run) IsSeen(sent bool) bool { return sent }

// Close counts what the run has used, and stops what keeps its stream alive.
func (r *Run) Close() {
	if r.Stream != nil {
		r.Stream.Close()
	}
	r.Call.Ledger.Summary.FirstToken = r.First
	r.Request.CountUsage(r.usage())
}

// Generate sends a part's upstream request, and has the answer told. A request whose engine is lost is sent once more; the
// supervisor has a fresh instance for it by then. If the client has seen something of the answer, it goes on.
func (r *Run) Generate(ctx context.Context, p Part) error {
	t, err := r.newRelay(p)
	if err != nil {
		return err
	}
	err = r.OnLease(ctx, 1, p.Chain, func() wire.Upstream { return t.upstream }, func(lease *supervisor.Lease) error {
		return r.converse(ctx, lease, t)
	})
	if err != nil {
		r.giveUp(t)
		return t.refined(err)
	}
	return nil
}

// OnLease does something on a lease of as many slots as can be had, up to a number. It is done again as Generate says.
// chain is as in [Part]. upstream is the request by which one that crashes engines is known again.
func (r *Run) OnLease(
	ctx context.Context, slots int, chain prefix.Chain, upstream func() wire.Upstream, do func(*supervisor.Lease) error,
) error {
	bodies := func() [][]byte { return upstream().Body }
	demand := r.Request.Demand
	if chain != nil {
		demand.Prompt = chain
	}
	return r.Request.OnLease(ctx, demand, slots, bodies, func(lease *supervisor.Lease) error {
		if r.OnLeased != nil {
			r.OnLeased(lease)
		}
		return do(lease)
	})
}

// converse sends a part's upstream request on a lease, which may be one of several on it.
func (r *Run) converse(ctx context.Context, lease *supervisor.Lease, t *relay) error {
	if err := r.useInstance(t, &lease.Instance); err != nil {
		return err
	}
	ask := func() error {
		err := r.Request.Post(ctx, lease, t.next, func(resp *Response) error { return r.read(ctx, resp, t) })
		fault, ok := err.(*translate.Error)                //nolint:errorlint // others say more than the engine has
		if q, isChat := t.Task.(*ChatTask); ok && isChat { // it is about the engine's request
			return q.Chat.Blame(q.Body, fault)
		}
		return err
	}
	err := ask()
	if errors.Is(err, errDiverged) {
		if !t.plan(false) {
			return notContinued()
		}
		err = ask()
	}
	if e, ok := errors.AsType[*translate.Error](err); ok && e.IsUnparsed() {
		return r.unparsed(ctx, lease, t, ask, err)
	}
	return err
}

// read has an engine's answer told: with one write and one flush for each read.
func (r *Run) read(ctx context.Context, resp *Response, t *relay) error {
	begun := time.Now()
	if err := t.begin(ctx, resp); err != nil {
		return err
	}
	in, out := endpoint.Buffers.Get().(*[]byte), endpoint.Buffers.Get().(*[]byte)
	defer endpoint.Buffers.Put(in)
	defer r.Call.Client.PutBuffer(out)
	for {
		n, err := resp.Read(*in)
		if n > 0 && r.pass(out, func(dst []byte) []byte { return t.rewriter.Append(dst, (*in)[:n]) }) {
			t.note()
		}
		if err != nil || t.rewriter.Cut() || t.rewriter.Fault() != nil {
			break // whether or not it is the end: the rewriter knows if anything is missing
		}
	}
	if r.pass(out, t.rewriter.Close) {
		t.note()
	}
	if t.fill(resp) && r.pass(out, t.rewriter.Close) {
		t.note()
	}
	var measured wire.Measurer = t.rewriter
	if t.mode != wire.Restart { // of the current engine alone
		measured = t.recorder.Current()
	}
	usage, timings := measured.Figures() // an answer that is cut has told less
	resp.body.Used(schedule.Use{
		Prompt: usage.Prompt, Cached: usage.Cached, Completion: usage.Completion,
		PromptTime: time.Duration(timings.PromptMillis * float64(time.Millisecond)),
	})
	err := t.end(ctx, r.Stream != nil)
	first := t.from
	if e, ok := t.rewriter.(*eventRewriter); ok {
		if first = e.timed.first; timings.PredictedPerSecond == 0 {
			timings = e.timed.timings()
		}
	}
	r.Call.Ledger.Measured(usage.Completion, timings)
	traceEngine(r.Call, begun, first, resp, usage, timings, err)
	used := t.rewriter.Usage() // of all engines
	if t.recorder != nil && t.recorder.IsLost() {
		used = resp.usage(t.recorder.Said().Usage)
	}
	cause := err
	if ctx.Err() != nil {
		cause = context.Cause(ctx)
	}
	// Nothing is counted if the engine was lost and the client is answered anew. What was generated for one that disconnected is counted.
	_, isWasted := errors.AsType[*engineLost](cause)
	r.count(t.Part, used, t.sent || !isWasted)
	return err
}

// giveUp has what is known of an answer told whose engine was lost and that doesn't go on.
func (r *Run) giveUp(t *relay) {
	if t.recorder == nil || !t.recorder.IsLost() || t.rewriter == nil {
		return
	}
	t.state = wire.Failed
	t.recorder.GiveUp()
	buf := endpoint.Buffers.Get().(*[]byte)
	defer r.Call.Client.PutBuffer(buf)
	r.pass(buf, t.rewriter.Close)
}

// pass sends what a rewriter appends, unless the client has disconnected. A client whose request was ended by the server gets an error
// after this; and the log of a response in the background must have no gap. Choices share a stream and its end: hence one at a time.
func (r *Run) pass(buf *[]byte, appendTo func(dst []byte) []byte) (sent bool) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	frames := appendTo((*buf)[:0])
	if ctx := r.Call.Request.Context(); ctx.Err() != nil && r.Call.Background == nil && access.Ended(ctx) == nil {
		return false
	}
	return r.send(buf, frames)
}

// Send sends what a function appends. It is for what belongs to no engine's stream.
func (r *Run) Send(appendTo func(dst []byte) []byte) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.send(&r.frames, appendTo(r.frames[:0]))
}

// send sends frames that were made in a buffer, which may have grown. It tells whether they are part of an answer. It needs the lock.
func (r *Run) send(buf *[]byte, frames []byte) (sent bool) {
	*buf = frames[:cap(frames)]
	if r.Stream == nil || len(frames) == 0 {
		return false
	}
	return r.Stream.Send(frames)
}

type eventRewriter struct {
	wire.Rewriter

	timed *timedDecoder
}

// ByEvents makes a client's stream of an engine's by way of events. Beside the decoder's, the encoder gets a FirstToken, and an answer that
// breaks off gets the Timings that were measured here.
func (r *Run) ByEvents(resp *Response, decoder translate.Decoder, encoder translate.Encoder) wire.Rewriter {
	timed := &timedDecoder{run: r, bound: &resp.contextLimit, began: time.Now()}
	timed.Init(decoder, timed.event)
	return &eventRewriter{wire.Encoded(timed, encoder), timed}
}

// SinceArrival is asked when an answer begins, and notes when the first of them did. It needs the lock.
func (r *Run) SinceArrival() time.Duration {
	now := time.Since(r.Call.Arrived)
	if r.First == 0 {
		r.First = now
	}
	return now
}

// count notes what an attempt at a part has used. Another attempt takes its place.
func (r *Run) count(p Part, u translate.Usage, counts bool) {
	switch {
	case !counts:
		u = translate.Usage{}
	case p.IsFree:
		u.Completion = 0
	}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	i := slices.IndexFunc(r.spent, func(s partUsage) bool { return s.index == p.Index })
	if i < 0 {
		i = len(r.spent)
		r.spent = append(r.spent, partUsage{index: p.Index})
	}
	r.spent[i].prompt, r.spent[i].Usage = p.Prompt, u
}

// usage is what all parts have used, complete or not. Each prompt counts once.
func (r *Run) usage() (total translate.Usage) {
	if len(r.spent) == 1 {
		return r.spent[0].Usage
	}
	prompts := map[int]translate.Usage{}
	for _, s := range r.spent {
		total.Completion += s.Completion
		p, isKnown := prompts[s.prompt]
		if !isKnown || s.Cached < p.Cached && s.Prompt > 0 {
			p.Cached = s.Cached // later choices find the prompt that the first has processed
		}
		p.Prompt = max(p.Prompt, s.Prompt)
		prompts[s.prompt] = p
	}
	for _, p := range prompts {
		total.Prompt += p.Prompt
		total.Cached += p.Cached
	}
	return total
}

// traceEngine adds the span of an upstream answer, of which first is the time of the first token; zero: unknown.
func traceEngine(c *endpoint.Call, begun, first time.Time, resp *Response, u translate.Usage, t translate.Timings, err error) {
	if c.Ledger.Tracer == nil {
		return
	}
	attributes := []attribute.KeyValue{
		attribute.String("lm.instance", resp.Lease.Instance.ID),
		attribute.Int("gen_ai.usage.input_tokens", u.Prompt), attribute.Int("lm.cached_tokens", u.Cached),
		attribute.Int("gen_ai.usage.output_tokens", u.Completion),
	}
	if !first.IsZero() {
		attributes = append(attributes, attribute.Float64("lm.time_to_first_token", first.Sub(begun).Seconds()))
	}
	if t.PredictedPerSecond > 0 {
		attributes = append(attributes, attribute.Float64("lm.tokens_per_second", t.PredictedPerSecond))
	}
	_, span := c.Ledger.Tracer.Start(c.Request.Context(), "engine", trace.WithTimestamp(begun), trace.WithAttributes(attributes...))
	if err != nil {
		span.SetStatus(codes.Error, "the engine's answer isn't complete")
	}
	span.End()
}
