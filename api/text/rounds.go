package text

import (
	"cmp"
	"context"

	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Loop is a run whose model may call tools that the server calls for it. Each round is an upstream request of the run.
type Loop struct {
	*Run
	Writer RoundWriter

	Number   int   // of the round
	context  int   // length of the context of the last round, in tokens
	overflow error // there is no room for more results
}

// RoundWriter is how a dialect asks for rounds and tells of them.
type RoundWriter interface {
	// upstream returns what the engine is sent for a round.
	Upstream(round *mcploop.Round) (*jsonbody.Body, *request.Chat, *translate.Error)

	// begin notes that an engine has begun to answer a round, or has begun again. Of a stream, it appends what comes first.
	BeginRound(dst []byte, resp *Response, round int) []byte

	// Append appends what the client of a stream sees of an event.
	Append(dst []byte, ev translate.Event) []byte

	// add gathers an event of an answer in one piece.
	Gather(ev translate.Event)

	// isSeen reports whether anything of the current round has been told.
	RoundIsSeen() bool
}

// minResults and maxResults bound how many tokens of a round's results the model is given.
const minResults, maxResults = 512, 256 << 10

// Rounds has the model answer a conversation, and its calls made.
func (l *Loop) Rounds(ctx context.Context, conversation []translate.Item, tools *mcploop.Toolbox) error {
	return mcploop.Run(ctx, l, conversation, tools, cmp.Or(l.Call.Node.Settings().MCP.MaxRounds, node.DefaultRounds), l.between)
}

// ResultTokens returns how many tokens of a round's results the model is given: half of what the context has room for after the round, so
// that the other half is left for the answer and more calls.
func (l *Loop) ResultTokens() int {
	room := l.context
	if n := len(l.spent); n > 0 {
		room -= l.spent[n-1].Prompt + l.spent[n-1].Completion
	}
	return min(max(minResults, room/2), maxResults)
}

// between tells of what happens between two rounds.
func (l *Loop) between(ev translate.Event) {
	if l.overflow == nil {
		l.overflow = l.Request.gather(ev)
	}
	if l.overflow == nil {
		l.Event(ev)
	}
}

// Event tells of an event that is none of an engine's.
func (l *Loop) Event(ev translate.Event) {
	if l.Stream == nil {
		l.Writer.Gather(ev)
		return
	}
	l.Send(func(dst []byte) []byte { return l.Writer.Append(dst, ev) })
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
	if limit := request.TokenLimit(body); limit > 0 && round.Number > 1 {
		chat.Limit = max(1, limit-used.Completion)
		chat.LimitTokens(chat.Limit)
	}
	if err := l.Request.ReserveChat(body, chat, used.Prompt+used.Completion); err != nil {
		return err
	}
	l.Number, l.Request.Demand.Priority = round.Number, round.Number > 1
	p := Part{Index: round.Number, Prompt: round.Number, Reply: &roundReply{loop: l, round: round, chat: chat}}
	return l.Generate(ctx, l.ChatPart(p, body, chat))
}

// roundReply is the reply of a round.
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
			return l.Writer.Append(l.Writer.BeginRound(dst, resp, begun.Number), begun)
		})
		p.pass = func(ev translate.Event) { p.dst = l.Writer.Append(p.dst, ev) }
	} else {
		l.Writer.BeginRound(nil, resp, begun.Number)
		l.Writer.Gather(begun)
		p.pass = l.Writer.Gather
	}
	return l.ByEvents(resp, wire.DecoderOf(resp.Engine, p.chat, decoder), p), nil
}

// Append appends what the client sees of an event of the engine.
func (p *roundReply) Append(dst []byte, ev translate.Event) []byte {
	p.dst = dst
	p.round.Take(ev, p.pass)
	return p.dst
}

func (p *roundReply) IsSeen(bool) bool { return p.loop.Writer.RoundIsSeen() }
