// Package mcploop lets a model call the tools of MCP servers: it asks the model, makes the calls that the model wants, gives
// their results back, and asks again, until the model has nothing to call. [Run] tells what happens as events.
//
// The servers are those of package servers, below. They follow the Model Context Protocol, https://modelcontextprotocol.io.
package mcploop

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
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
			result, trouble := refused, (*translate.Error)(nil)
			switch needs := r.tools.AsksAll || c.offer.source.NeedsApproval != nil && c.offer.source.NeedsApproval(); {
			case !needs:
				result, trouble = c.offer.call(ctx, c.args)
			case r.tools.Approval == nil:
				result = unasked
			default:
				wait := r.tools.Approval(c.id)
				telling.Lock()
				emit(translate.CallApproval{Index: c.index, ID: c.id})
				telling.Unlock()
				if wait(ctx) {
					result, trouble = c.offer.call(ctx, c.args)
				}
			}
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

// Results of calls that aren't approved, or about which nobody can be asked.
var (
	refused = Result{Content: []byte(`[{"type":"text","text":"The user doesn't allow this call."}]`), IsError: true}
	unasked = Result{Content: []byte(`[{"type":"text","text":"This call needs the user's approval, for which this request can't ask."}]`), IsError: true}
)

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

// Round is one answer of a model.
type Round struct {
	Number       int // from 1
	Conversation []translate.Item

	before    int      // valid calls of servers' tools in the rounds before
	made      int      // and in this one
	tools     *Toolbox // that the model may call; nil: none
	isLast    bool     // it has to answer without the tools that it had
	reasoning strings.Builder
	text      strings.Builder
	space     string // with which a text begins, until there is more of it
	inText    bool   // more than space has come since the last call or thought
	calls     []*call
	finish    translate.FinishReason
}

type call struct {
	index  int
	id     string
	name   string // as the model wrote it
	offer  *offer // nil if there is no such tool
	args   []byte
	reason string // why it can't be made; empty if it can
	given  []translate.Part
}

// Tools returns the tools that the model may call.
func (r *Round) Tools() []request.Tool {
	if r.tools.IsEmpty() {
		return nil
	}
	return r.tools.tools
}

// Begin forgets what an earlier attempt at the answer has said.
func (r *Round) Begin() {
	r.reasoning.Reset()
	r.text.Reset()
	r.calls, r.finish, r.space, r.inText, r.made = nil, "", "", false, r.before
}

// Take takes an event of the engine's answer, and passes on what follows from it. Calls that can't be made become invalid calls.
func (r *Round) Take(ev translate.Event, emit func(translate.Event)) {
	if r.tools.IsEmpty() {
		switch ev.(type) {
		case translate.CallStart, translate.CallArgs, translate.CallDone:
			if r.isLast { // a call can't be made any more
				return
			}
		}
		emit(ev)
		return
	}
	switch ev := ev.(type) {
	case translate.Reasoning:
		r.inText = false
		r.reasoning.WriteString(ev.Text)
	case translate.Text:
		r.say(ev.Text, emit)
		return
	case translate.CallStart:
		r.space, r.inText = "", false
		r.start(ev, emit)
		return
	case translate.CallArgs:
		if c := r.call(ev.Index); c != nil {
			c.args = append(c.args, ev.Text...)
			if c.offer == nil {
				return
			}
		}
	case translate.CallDone:
		if c := r.call(ev.Index); c != nil {
			r.done(c, emit)
			return
		}
	case translate.Finish:
		r.finish = ev.Reason
		if r.space != "" && len(r.calls) == 0 {
			emit(translate.Text{Text: r.space})
		}
	}
	emit(ev)
}

// say passes a text on. Space before a call is no message: many models write some.
func (r *Round) say(text string, emit func(translate.Event)) {
	if !r.inText {
		text = r.space + text
		if strings.TrimSpace(text) == "" {
			r.space = text
			return
		}
		r.inText, r.space = true, ""
	}
	r.text.WriteString(text)
	emit(translate.Text{Text: text})
}

func (r *Round) start(ev translate.CallStart, emit func(translate.Event)) {
	if r.tools.Single && len(r.calls) > 0 {
		return // nobody knows a call that hasn't started
	}
	c := &call{index: ev.Index, id: ev.ID, name: ev.Name, offer: r.tools.byName[ev.Name]}
	if c.id == "" {
		c.id = "call_" + rand.Text()
	}
	if c.offer == nil && len(r.tools.sources) == 0 {
		c.offer = &offer{Tool: Tool{Name: ev.Name}} // the client knows what it can call
	}
	r.calls = append(r.calls, c)
	switch {
	case c.isClients():
		emit(translate.CallStart{Index: c.index, ID: c.id, Name: c.name})
	case c.offer != nil:
		emit(translate.CallStart{Index: c.index, ID: c.id, Name: c.offer.Name, Provider: c.offer.source.Provider})
	}
}

func (c *call) isClients() bool { return c.offer != nil && c.offer.source == nil }

func (r *Round) done(c *call, emit func(translate.Event)) {
	if c.offer == nil {
		c.reason = "Cannot find tool with name " + translate.QuoteShort(c.name) + ". The tools are: " + listed(r.tools.names()) + "."
		emit(translate.CallInvalid{Index: c.index, ID: c.id, Name: c.name, Reason: c.reason})
		return
	}
	if len(strings.TrimSpace(string(c.args))) == 0 {
		c.args = []byte("{}")
		emit(translate.CallArgs{Index: c.index, Text: "{}"})
	}
	emit(translate.CallDone{Index: c.index})
	if c.isClients() {
		return
	}
	if c.reason = c.offer.refuse(c.args); c.reason == "" {
		if r.made++; r.tools.MaxCalls > 0 && r.made > r.tools.MaxCalls {
			c.reason = "No more tools can be called: the limit of " + strconv.Itoa(r.tools.MaxCalls) + " calls is reached."
		}
	}
	if c.reason != "" {
		emit(translate.CallInvalid{Index: c.index, ID: c.id, Name: c.offer.Name, Reason: c.reason, ArgumentsBad: true})
	}
}

func (r *Round) call(index int) *call {
	for _, c := range slices.Backward(r.calls) {
		if c.index == index {
			return c
		}
	}
	return nil
}

func (r *Round) said() []translate.Item {
	var items []translate.Item
	if r.reasoning.Len() > 0 {
		items = append(items, translate.Item{Kind: translate.ItemReasoning, Parts: []translate.Part{{Text: r.reasoning.String()}}})
	}
	if r.text.Len() > 0 {
		parts := []translate.Part{{Text: r.text.String()}}
		items = append(items, translate.Item{Kind: translate.ItemMessage, Role: translate.RoleAssistant, Parts: parts})
	}
	for _, c := range r.calls {
		item := translate.Item{Kind: translate.ItemCall, CallID: c.id, Tool: c.name, Args: c.args}
		if c.reason != "" {
			c.given = []translate.Part{{Text: c.reason}}
			item.Kind, item.Parts = translate.ItemInvalid, c.given
		}
		items = append(items, item)
	}
	for _, c := range r.calls {
		items = append(items, translate.Item{Kind: translate.ItemResult, CallID: c.id, Tool: c.name, Parts: c.given})
	}
	return items
}
