package api

import (
	"cmp"
	"context"

	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// loop has the model answer, and its calls made.
func (r *nativeRun) loop(ctx context.Context) error {
	var tools *mcploop.Toolbox
	if len(r.chat.Integrations) > 0 {
		var err error
		if tools, err = r.call.toolbox(ctx, r.chat.Integrations, r.rq.caps); err != nil {
			return err
		}
	}
	e := &nativeEngine{nativeRun: r}
	return mcploop.Run(ctx, e, r.conversation, tools, cmp.Or(r.call.node.Settings().MCP.MaxRounds, node.DefaultRounds), e.tell)
}

// nativeEngine is the engine of a native chat's loop: each round is an upstream request of the run.
type nativeEngine struct {
	*nativeRun

	context  int   // length of the context of the last round, in tokens
	overflow error // there is no room for more results
}

const (
	// minResult and maxResult bound how many bytes of a result the model is given.
	minResult, maxResult = 2 << 10, 1 << 20
	// resultShare is how many bytes of a result are allowed for each token of the context: a token has about three bytes, so
	// that a result takes up to half of the context.
	resultShare = 1.5
)

// ResultBytes returns how many bytes of a tool's result the model is given.
func (e *nativeEngine) ResultBytes() int {
	return min(max(minResult, int(resultShare*float64(e.context))), maxResult)
}

// tell tells of what happens between two rounds.
func (e *nativeEngine) tell(ev translate.Event) {
	if e.overflow == nil {
		e.overflow = e.call.gather(ev)
	}
	if e.overflow != nil {
		return
	}
	if e.stream != nil {
		e.event(ev)
	} else {
		e.out.Answer.Add(ev)
	}
}

// Answer makes a round of the answer.
func (e *nativeEngine) Answer(ctx context.Context, round *mcploop.Round) error {
	if e.overflow != nil {
		return e.overflow
	}
	body, bad := e.chat.Upstream(round.Conversation, round.Tools())
	if bad != nil {
		return bad
	}
	chat := e.chat.Chat
	used := e.usage()
	if limit := request.TokenLimit(body); limit > 0 && round.Number > 1 {
		chat.Limit = max(1, limit-used.Completion)
		chat.LimitTokens(chat.Limit)
	}
	if err := e.call.reserveChat(e.rq, body, &chat, used.Prompt+used.Completion); err != nil {
		return err
	}
	e.rq.demand.Priority = round.Number > 1
	upstream := e.rq.engine.Chat(body, &chat, 0)
	return e.exchange(ctx, part{index: round.Number, prompt: round.Number, upstream: upstream, reply: &nativeRound{engine: e, round: round}})
}

// nativeRound is the reply of a round.
type nativeRound struct {
	engine *nativeEngine
	round  *mcploop.Round
	dst    []byte                // what Append appends to
	pass   func(translate.Event) // takes what the round makes of an event
}

func (n *nativeRound) begin(_ context.Context, resp *engineResponse) (wire.Rewriter, error) {
	e, begun := n.engine, translate.Round{Number: n.round.Number}
	in := resp.lease.Instance
	e.context = in.Spec.ContextLength
	n.round.Begin()
	decoder := wire.Decoder(e.rq.engine, &e.chat.Chat)
	if e.stream != nil {
		e.nativeRun.tell(func(dst []byte) []byte {
			if begun.Number == 1 {
				dst = e.out.Begin(dst, in.ID)
			}
			return e.out.Append(dst, begun)
		})
		n.pass = func(ev translate.Event) { n.dst = e.out.Append(n.dst, ev) }
		return e.byEvents(decoder, n), nil
	}
	if begun.Number == 1 {
		e.out.Answer = native.Answer{Instance: in.ID}
		if took := resp.lease.LoadTime; took > 0 {
			e.out.Answer.Add(loadEnd(in.ID, took))
		}
	}
	e.out.Answer.Add(begun)
	n.pass = e.out.Answer.Add
	return e.byEvents(decoder, n), nil
}

// Append appends what the client sees of an event of the engine.
func (n *nativeRound) Append(dst []byte, ev translate.Event) []byte {
	n.dst = dst
	n.round.Take(ev, n.pass)
	return n.dst
}

func (n *nativeRound) isSeen(bool) bool { return !n.engine.out.Answer.RoundIsEmpty() }
