package api

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

// loopRun is a run whose model may call tools that the server calls for it. Each round is an upstream request of the run.
type loopRun struct {
	*run
	teller teller

	number   int   // of the round
	context  int   // length of the context of the last round, in tokens
	overflow error // there is no room for more results
}

// teller is how a dialect asks for rounds and tells of them.
type teller interface {
	// upstream returns what the engine is sent for a round.
	upstream(round *mcploop.Round) (*jsonbody.Body, *request.Chat, *translate.Error)

	// begin notes that an engine has begun to answer a round, or has begun again. Of a stream, it appends what comes first.
	begin(dst []byte, resp *engineResponse, round int) []byte

	// Append appends what the client of a stream sees of an event.
	Append(dst []byte, ev translate.Event) []byte

	// add gathers an event of an answer in one piece.
	add(ev translate.Event)

	// isSeen reports whether anything of the current round has been told.
	isSeen() bool
}

// minResults and maxResults bound how many tokens of a round's results the model is given.
const minResults, maxResults = 512, 256 << 10

// loop has the model answer a conversation, and its calls made.
func (l *loopRun) loop(ctx context.Context, conversation []translate.Item, tools *mcploop.Toolbox) error {
	return mcploop.Run(ctx, l, conversation, tools, cmp.Or(l.call.Node.Settings().MCP.MaxRounds, node.DefaultRounds), l.between)
}

// ResultTokens returns how many tokens of a round's results the model is given: half of what the context has room for after the round, so
// that the other half is left for the answer and more calls.
func (l *loopRun) ResultTokens() int {
	room := l.context
	if n := len(l.spent); n > 0 {
		room -= l.spent[n-1].Prompt + l.spent[n-1].Completion
	}
	return min(max(minResults, room/2), maxResults)
}

// between tells of what happens between two rounds.
func (l *loopRun) between(ev translate.Event) {
	if l.overflow == nil {
		l.overflow = l.rq.gather(ev)
	}
	if l.overflow == nil {
		l.event(ev)
	}
}

// event tells of an event that is none of an engine's.
func (l *loopRun) event(ev translate.Event) {
	if l.stream == nil {
		l.teller.add(ev)
		return
	}
	l.tell(func(dst []byte) []byte { return l.teller.Append(dst, ev) })
}

// Answer makes a round of the answer.
func (l *loopRun) Answer(ctx context.Context, round *mcploop.Round) error {
	if l.overflow != nil {
		return l.overflow
	}
	body, chat, bad := l.teller.upstream(round)
	if bad != nil {
		return bad
	}
	used := l.usage()
	if limit := request.TokenLimit(body); limit > 0 && round.Number > 1 {
		chat.Limit = max(1, limit-used.Completion)
		chat.LimitTokens(chat.Limit)
	}
	if err := l.rq.reserveChat(body, chat, used.Prompt+used.Completion); err != nil {
		return err
	}
	l.number, l.rq.demand.Priority = round.Number, round.Number > 1
	p := part{index: round.Number, prompt: round.Number, reply: &loopReply{loop: l, round: round, chat: chat}}
	return l.exchange(ctx, l.chatPart(p, body, chat))
}

// loopReply is the reply of a round.
type loopReply struct {
	loop  *loopRun
	round *mcploop.Round
	chat  *request.Chat
	dst   []byte                // what Append appends to
	pass  func(translate.Event) // takes what the round makes of an event
}

func (p *loopReply) begin(_ context.Context, resp *engineResponse, decoder *wire.Recorder) (wire.Rewriter, error) {
	l, begun := p.loop, translate.Round{Number: p.round.Number}
	l.context = resp.lease.Instance.Spec.ContextLength
	p.round.Begin()
	if l.stream != nil {
		l.tell(func(dst []byte) []byte {
			return l.teller.Append(l.teller.begin(dst, resp, begun.Number), begun)
		})
		p.pass = func(ev translate.Event) { p.dst = l.teller.Append(p.dst, ev) }
	} else {
		l.teller.begin(nil, resp, begun.Number)
		l.teller.add(begun)
		p.pass = l.teller.add
	}
	return l.byEvents(resp, wire.DecoderOf(resp.engine, p.chat, decoder), p), nil
}

// Append appends what the client sees of an event of the engine.
func (p *loopReply) Append(dst []byte, ev translate.Event) []byte {
	p.dst = dst
	p.round.Take(ev, p.pass)
	return p.dst
}

func (p *loopReply) isSeen(bool) bool { return p.loop.teller.isSeen() }
