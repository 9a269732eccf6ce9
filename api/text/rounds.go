package text

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Loop is a run whose model may call tools that the server calls for it, and whose answer may be stored. Each round is an upstream request
// of the run. Native chat and the Responses API are answered by one.
type Loop struct {
	*Run
	Writer Writer
	Output Output
	Fields FieldNames // of the dialect

	Number   int   // of the round
	context  int   // length of the context of the last round, in tokens
	overflow error // there is no room for more results
}

// Output is what the events of an answer become: a stream, or a body in one piece.
type Output interface {
	// Append appends what the client of a stream sees of an event.
	Append(dst []byte, ev translate.Event) []byte
	// Add gathers an event of an answer in one piece.
	Add(ev translate.Event)
	// RoundIsEmpty reports whether nothing of the current round has been written.
	RoundIsEmpty() bool
	// AppendBody appends the answer in one piece.
	AppendBody(dst []byte) []byte
}

// Writer is how a dialect asks for the rounds of an answer, and begins and ends it.
type Writer interface {
	// Upstream returns what the engine is sent for a round.
	Upstream(round *mcploop.Round) (*jsonbody.Body, *request.Chat, *translate.Error)
	// BeginRound notes that an engine has begun to answer a round, or has begun again. Of a stream, it appends what comes first.
	BeginRound(dst []byte, resp *Response, round int) []byte
	// Complete stores the answer, which is whole.
	Complete() error
	// Interrupted ends what there is of an answer whose request has ended, and returns the error of the request.
	Interrupted(ctx context.Context) error
	// AppendEnd appends the end of the stream. If there was an error, what was generated is stored before.
	AppendEnd(dst []byte, e *translate.Error) []byte
}

// Respond has the answer generated, and completes it: in one piece, with the end of a stream, or with an error.
func (l *Loop) Respond(generate func(context.Context) error) error {
	l.Gathers = true
	ctx := l.Call.Request.Context()
	err := generate(ctx)
	if l.Stream != nil {
		l.Stream.Close() // from here on nobody else writes
	}
	if err == nil {
		err = l.Writer.Complete()
	} else if ended := access.Ended(ctx); ended != nil {
		err = ended
	} else if cause := context.Cause(ctx); errors.Is(cause, runs.ErrShutDown) {
		err = cause
	} else if ctx.Err() != nil { // whatever the error looks like from here
		return l.Writer.Interrupted(ctx)
	}
	switch {
	case err != nil && !l.Call.Begun:
		return Refined(err, l.Fields.Refine)
	case l.Stream == nil:
		l.Call.WriteJSON(http.StatusOK, l.Output.AppendBody(nil))
	default:
		l.End(err)
	}
	return nil
}

// End ends the stream, with what was generated, whether or not there was an error.
func (l *Loop) End(err error) {
	var e *translate.Error
	if err != nil {
		e = l.Call.Error(Refined(err, l.Fields.Refine))
		l.Call.Site.Log.Warn("a stream failed", "request", l.Call.ID, "error", e)
		l.Call.Ledger.Failed(e)
	}
	l.Send(func(dst []byte) []byte { return l.Writer.AppendEnd(dst, e) })
}

// minResults and maxResults bound how many tokens of a round's results the model is given.
const minResults, maxResults = 512, 256 << 10

// Rounds has the model answer a conversation, and its calls made.
func (l *Loop) Rounds(ctx context.Context, conversation []translate.Item, tools *mcploop.Toolbox) error {
	between := func(ev translate.Event) { // two rounds
		if l.overflow == nil {
			l.overflow = l.Request.gather(ev)
		}
		if l.overflow == nil {
			l.Event(ev)
		}
	}
	return mcploop.Run(ctx, l, conversation, tools, cmp.Or(l.Call.Node.Settings().MCP.MaxRounds, node.DefaultRounds), between)
}

// ResultTokens returns how many tokens of a round's results the model is given: half of the room, so that the rest is for more.
func (l *Loop) ResultTokens() int {
	room := l.context
	if n := len(l.spent); n > 0 {
		room -= l.spent[n-1].Prompt + l.spent[n-1].Completion
	}
	return min(max(minResults, room/2), maxResults)
}

// Event tells of an event that is none of an engine's.
func (l *Loop) Event(ev translate.Event) {
	if l.Stream == nil {
		l.Output.Add(ev)
		return
	}
	l.Send(func(dst []byte) []byte { return l.Output.Append(dst, ev) })
}

// Answer makes a round of the answer.
func (l *Loop) Answer(ctx context.Context, round *mcploop.Round) error {
	if l.overflow != nil {
		return l.overflow
	}
	body, chat, bad := l.Writer.Upstream(round)
	if bad != nil {
		return bad
	}
	used := l.usage()
	if limit := request.TokenLimit(body.Fields()); limit > 0 && round.Number > 1 {
		chat.Limit = max(1, limit-used.Completion)
		chat.LimitTokens(chat.Limit)
	}
	if err := l.Request.ReserveChat(body, chat, used.Prompt+used.Completion); err != nil {
		return err
	}
	l.Number, l.Request.Demand.Priority = round.Number, round.Number > 1
	return l.Generate(ctx, Part{
		Index: round.Number, Prompt: round.Number, Task: &ChatTask{Body: body, Chat: chat},
		Reply: &roundReply{loop: l, round: round, chat: chat},
	})
}

type roundReply struct {
	loop  *Loop
	round *mcploop.Round
	chat  *request.Chat
	dst   []byte                // what Append appends to
	pass  func(translate.Event) // takes what the round makes of an event
}

func (p *roundReply) Begin(_ context.Context, resp *Response, decoder *wire.Recorder) (wire.Rewriter, error) {
	l, begun := p.loop, translate.Round{Number: p.round.Number}
	l.context = resp.Lease.Instance.Spec.ContextLength
	p.round.Begin()
	if l.Stream != nil {
		l.Send(func(dst []byte) []byte {
			return l.Output.Append(l.Writer.BeginRound(dst, resp, begun.Number), begun)
		})
		p.pass = func(ev translate.Event) { p.dst = l.Output.Append(p.dst, ev) }
	} else {
		l.Writer.BeginRound(nil, resp, begun.Number)
		l.Output.Add(begun)
		p.pass = l.Output.Add
	}
	return l.ByEvents(resp, wire.DecoderOf(resp.Engine, p.chat, decoder), p), nil
}

func (p *roundReply) Append(dst []byte, ev translate.Event) []byte {
	p.dst = dst
	p.round.Take(ev, p.pass)
	return p.dst
}

func (p *roundReply) IsSeen(bool) bool { return !p.loop.Output.RoundIsEmpty() }

// InBackground begins an answer that is made whether or not the client waits for it, on a call that writes to the run's log, where begin
// appends what comes first. However it ends, the log and the store say so. The error is that of [runs.Runs.Start].
func (l *Loop) InBackground(rq *Request, turn *store.Turn, begin func([]byte) []byte, do func(context.Context) error) (*runs.Run, error) {
	c, d := rq.Call, rq.Call.Detach()
	rq.Streams = true // to the log
	run, err := c.Node.Runs.Start(c.Request.Context(), turn, func(ctx context.Context, run *runs.Run) {
		defer d.End()
		defer d.Client.Close()
		d.Attach(ctx, run)
		rq.Call = d
		l.Run = NewRun(rq)
		defer l.Close()
		defer func() {
			if fault := recover(); fault != nil {
				l.End(l.Call.Panicked(fault))
			}
		}()
		l.Send(begin)
		if err := l.Respond(do); err != nil {
			l.End(err)
		}
	})
	if err != nil {
		c.TakeBack(d)
	}
	return run, err
}

// NotBegun is the error of an answer in the background that could not begin.
func NotBegun(c *endpoint.Call, err error) error {
	if _, isLimit := errors.AsType[*access.LimitError](err); isLimit || errors.Is(err, runs.ErrShutDown) {
		return err
	}
	return NotStored(c, err)
}

// Follow streams the log of a run, from an event on. That the client disconnects, or reads slowly, is nothing to the run. A client that has
// every event already is sent atEnd. The error says why the log can't be followed to its end; next is the number of the next event.
func Follow(c *endpoint.Call, run *runs.Run, from int, atEnd []byte) (next int, _ error) {
	stream := c.NewStream()
	defer stream.Close()
	stream.Await()
	buf := endpoint.Buffers.Get().(*[]byte)
	defer c.Client.PutBuffer(buf)
	ctx := c.Request.Context()
	for isFirst := true; ; isFirst = false {
		frames, next, err := run.Follow(ctx, (*buf)[:0], from)
		*buf = frames[:cap(frames)]
		switch {
		case errors.Is(err, io.EOF):
			if isFirst {
				stream.Send(atEnd)
			}
			return from, nil
		case err != nil:
			return from, err
		}
		stream.Send(frames)
		from = next
	}
}

// TellProgress calls tell with the progress of a load, until the function that it returns has returned, or ctx has ended.
func TellProgress(ctx context.Context, loading <-chan supervisor.Progress, tell func(supervisor.Progress)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case p := <-loading:
				if p.Instance != "" {
					tell(p)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-over
	}
}
