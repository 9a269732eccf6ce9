package api

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// chatCompletions is POST /v1/chat/completions and POST /api/v0/chat/completions.
func (c *call) chatCompletions() error {
	rq, err := c.request()
	if err != nil {
		return err
	}
	if m := rq.target.Model; m.Type == catalog.TypeEmbedding {
		return wrongModel(m, "generates no text: choose a language model.")
	}
	ask, bad := openai.ParseChat(rq.body, rq.caps)
	if bad != nil {
		return bad
	}
	c.noteDropped(rq, ask)
	if err := c.reserveChat(rq, rq.body, ask); err != nil {
		return err
	}
	run := &chatRun{
		call: c, rq: rq, ask: ask,
		id: "chatcmpl-" + strings.ToLower(rand.Text()), created: time.Now().Unix(),
		reasoning: c.node.Settings().ReasoningField,
	}
	if rq.stream {
		run.stream = c.newStream()
		defer run.stream.close()
	} else {
		run.gathered = make([]*openai.ChatChoice, ask.N)
	}
	defer func() { c.used(rq, run.usage) }()
	if ask.N == 1 {
		err = c.exchange(c.r.Context(), rq.target, rq.demand, run.upstream(0), func(up *upstream) error { return run.read(c.r.Context(), 0, up) })
	} else {
		err = run.rounds(c.r.Context())
	}
	switch {
	case err != nil && rq.stream:
		run.stream.atFault = c.atFault(run.instance, rq.demand.Draft, run.first)
		return err
	case err != nil, rq.stream:
		return err
	}
	c.writeJSON(http.StatusOK, run.whole())
	return nil
}

// noteDropped logs which fields of a request don't reach the engine, for those who look for one.
func (c *call) noteDropped(rq *modelRequest, ask *request.Chat) {
	if ctx := c.r.Context(); c.api.Log.Enabled(ctx, slog.LevelDebug) {
		if dropped := rq.engine.Drops(rq.body, ask); len(dropped) > 0 {
			c.api.Log.DebugContext(ctx, "fields that the engine is not sent", "request", c.id, "fields", dropped)
		}
	}
}

// chatRun is a chat request on its way.
type chatRun struct {
	call      *call
	rq        *modelRequest
	ask       *request.Chat
	id        string
	created   int64
	reasoning openai.ReasoningField
	instance  supervisor.Info // that answers, once one does

	mu    sync.Mutex
	usage translate.Usage // so far
	first time.Duration   // from the request's arrival to the first token; 0: there is none yet

	stream *stream // nil for an answer in one piece
	tail   *openai.ChatTail

	gathered []*openai.ChatChoice // of an answer in one piece: those that are complete
}

// upstream is what the engine is sent for a choice.
func (r *chatRun) upstream(choice int) wire.Upstream {
	return r.rq.engine.Chat(r.rq.body, r.ask, choice)
}

// begin notes who answers. It is called again if another instance takes over, which is before the client has seen anything.
func (r *chatRun) begin(in supervisor.Info) {
	r.instance = in
	if r.stream != nil {
		r.tail = openai.NewChatTail(r.ask.N, r.rq.includeUsage, r.call.extra(r.instance, r.rq.demand.Draft))
	}
}

func (r *chatRun) envelope() openai.Envelope {
	return openai.Envelope{ID: r.id, Created: r.created, Model: r.instance.ID, Fingerprint: r.instance.Build.Version}
}

// read has the engine's answer to one choice read, and passed on where it is streamed.
func (r *chatRun) read(ctx context.Context, choice int, up *upstream) error {
	if r.ask.N == 1 {
		r.begin(up.lease.Instance)
	}
	if r.stream != nil {
		rewriter := r.rewriter(openai.NewChatChunks(openai.ChunkOptions{
			Envelope: r.envelope(), Reasoning: r.reasoning, OnlyChosen: r.ask.OnlyChosen,
			SinceArrival: r.sinceArrival, Choice: choice, Tail: r.tail,
		}))
		defer func() { r.count(rewriter.Usage()) }()
		return r.stream.relay(up, rewriter)
	}
	gathered := new(openai.ChatChoice)
	var tally translate.Tally
	err := up.decode(wire.Decoder(r.rq.engine, r.ask), func(ev translate.Event) error {
		tally.Add(ev)
		gathered.Add(ev)
		return r.call.gather(ev)
	}, nil)
	err = retryable(err)
	if !isWasted(ctx, err) {
		r.count(tally.Usage())
	}
	if err != nil {
		return err
	}
	r.gathered[choice] = gathered
	return nil
}

// rewriter makes the client's stream of the engine's: by passing its chunks on, where the engine's stream allows that and the
// answer doesn't have to be looked into.
func (r *chatRun) rewriter(chunks *openai.ChatChunks) wire.Rewriter {
	if passer, ok := r.rq.engine.(wire.Passer); ok && !r.ask.Forced && len(r.ask.Stops) == 0 {
		return passer.Rewriter(r.ask, chunks)
	}
	return wire.Encoded(wire.Decoder(r.rq.engine, r.ask), openai.NewChatStream(chunks, r.ask.SingleCall))
}

// sinceArrival is asked when a choice begins.
func (r *chatRun) sinceArrival() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.call.sinceArrival()
	if r.first == 0 {
		r.first = now
	}
	return now
}

// count adds what a choice has used. The prompt is the same for all, and counts once.
func (r *chatRun) count(u translate.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usage.Prompt = max(r.usage.Prompt, u.Prompt)
	r.usage.Completion += u.Completion
}

// whole is the answer in one piece.
func (r *chatRun) whole() []byte {
	b := openai.ChatBody{
		Envelope: r.envelope(), Reasoning: r.reasoning, SingleCall: r.ask.SingleCall, OnlyChosen: r.ask.OnlyChosen,
		Extra: r.call.extra(r.instance, r.rq.demand.Draft),
	}
	return b.AppendBody(nil, r.gathered)
}
