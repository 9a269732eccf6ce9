// Package mcploop lets a model call the tools of MCP servers: it asks the model, makes the calls that the model wants, gives
// their results back, and asks again, until the model has nothing to call. [Run] tells what happens as events.
//
// The servers are those of package servers, below. They follow the Model Context Protocol, https://modelcontextprotocol.io.
package mcploop

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lmcaddy/lmcaddy/translate"
)

const callsAtOnce = 8

// Engine has a model answer.
type Engine interface {
	// Answer has the model answer the conversation of a round, once. It passes the events of the answer to [Round.Take], after
	// [Round.Begin], which it calls again if it has to begin the answer anew. It must hold nothing of the engine when it returns.
	Answer(ctx context.Context, round *Round) error

	// ResultTokens returns how many tokens of text the model is given of the results of the last round's calls, all together.
	ResultTokens() int
}

// Run has a model answer a conversation in rounds. As long as the model calls tools of servers, it is asked again with their
// results. A call of a function of the client ends the loop. The calls of one round are made concurrently. Without tools there is
// one round, and otherwise at most the given number; in the last one the model gets no tools, so that it has to answer.
//
// Run passes to emit, one at a time, the events that are not of the engine's answers: the results of calls, and the failures of
// servers. After a failure the chat goes on, with the failure as the result. The error is that of [Engine.Answer] or of the context.
func Run(ctx context.Context, engine Engine, conversation []translate.Item, tools *Toolbox, rounds int, emit func(translate.Event)) error {
	made := 0 // calls of earlier rounds
	var results givenTexts
	for n := 1; ; n++ {
		round := &Round{Number: n, Conversation: conversation, before: made}
		if n == 1 || n < rounds {
			round.tools = tools
		} else {
			round.isLast = true
		}
		if err := round.answer(ctx, engine, results); err != nil {
			return err
		}
		if len(round.calls) == 0 || round.finish == translate.FinishLength { // it has used up its tokens
			return nil
		}
		texts := round.makeCalls(ctx, emit)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		texts.cut(engine.ResultTokens())
		results = append(results, texts...)
		if slices.ContainsFunc(round.calls, (*call).isClients) {
			return nil
		}
		made = round.made
		conversation = append(slices.Clip(conversation), round.said()...)
	}
}

// answer has the model answer. As long as the conversation is longer than the context, the results of calls are cut by half.
func (r *Round) answer(ctx context.Context, engine Engine, results givenTexts) error {
	for {
		r.Begin()
		err := engine.Answer(ctx, r)
		long, ok := errors.AsType[*translate.Error](err)
		if !ok || long.Kind != translate.KindContextOverflow || !results.cut(results.tokens()/2) {
			return err
		}
	}
}

// makeCalls makes the valid calls of a round, and notes their results. It returns the texts of these.
func (r *Round) makeCalls(ctx context.Context, emit func(translate.Event)) (texts givenTexts) {
	var (
		telling sync.Mutex // held while an event is passed on
		calling sync.WaitGroup
		free    = make(chan struct{}, callsAtOnce)
		panics  caught
	)
	for _, c := range r.calls {
		if c.reason != "" || c.isClients() {
			continue
		}
		free <- struct{}{}
		calling.Go(func() {
			defer func() { <-free }()
			defer panics.catch()
			result, trouble := c.offer.call(ctx, c.args)
			if ctx.Err() != nil {
				return
			}
			telling.Lock()
			defer telling.Unlock()
			if trouble != nil {
				emit(translate.Trouble{Err: trouble})
			}
			c.given = r.tools.given(result.Content)
			texts = append(texts, textsOf(c.given)...)
			emit(translate.CallResult{Index: c.index, Output: string(result.Content), Given: c.given, IsError: result.IsError})
		})
	}
	calling.Wait()
	panics.repeat()
	return texts
}

// caught is the panic of a goroutine, to be repeated in the one that waits for it: there, it concerns no other chat.
type caught struct{ value atomic.Pointer[any] }

func (c *caught) catch() {
	if p := recover(); p != nil {
		c.value.Store(&p)
	}
}

func (c *caught) repeat() {
	if p := c.value.Load(); p != nil {
		panic(*p)
	}
}
