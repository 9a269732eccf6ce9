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
	ask, bad := translate.ParseChat(rq.body, rq.caps)
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
		run.gathered = make([]*translate.ChatChoice, ask.N)
	}
	defer func() { c.used(rq, run.usage) }()
	if ask.N == 1 {
		err = c.exchange(c.r.Context(), chatPath, rq.target, rq.demand, run.body(0), func(up *upstream) error { return run.read(c.r.Context(), 0, up) })
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
func (c *call) noteDropped(rq *request, ask *translate.Chat) {
	if ctx := c.r.Context(); c.api.Log.Enabled(ctx, slog.LevelDebug) {
		if dropped := rq.wire.Drops(rq.body, ask); len(dropped) > 0 {
			c.api.Log.DebugContext(ctx, "fields that the engine is not sent", "request", c.id, "fields", dropped)
		}
	}
}

// chatRun is a chat request on its way.
type chatRun struct {
	call      *call
	rq        *request
	ask       *translate.Chat
	id        string
	created   int64
	reasoning translate.ReasoningField
	instance  supervisor.Info // that answers, once one does

	mu    sync.Mutex
	usage translate.Usage // so far
	first time.Duration   // from the request's arrival to the first token; 0: there is none yet

	stream *stream // nil for an answer in one piece
	tail   *translate.ChatTail

	gathered []*translate.ChatChoice // of an answer in one piece: those that are complete
}

// body is what the engine is sent for a choice.
func (r *chatRun) body(choice int) [][]byte { return r.rq.wire.Chat(r.rq.body, r.ask, choice) }

// begin notes who answers. It is called again if another instance takes over, which is before the client has seen anything.
func (r *chatRun) begin(in supervisor.Info) {
	r.instance = in
	if r.stream != nil {
		r.tail = translate.NewChatTail(r.ask.N, r.rq.includeUsage, r.call.extra(r.instance, r.rq.demand.Draft))
	}
}

func (r *chatRun) envelope() translate.Envelope {
	return translate.Envelope{ID: r.id, Created: r.created, Model: r.instance.ID, Fingerprint: r.instance.Build.Version}
}

// read has the engine's answer to one choice read, and passed on where it is streamed.
func (r *chatRun) read(ctx context.Context, choice int, up *upstream) error {
	if r.ask.N == 1 {
		r.begin(up.lease.Instance)
	}
	if r.stream != nil {
		rewriter := r.rq.wire.Rewriter(r.ask, translate.RewriteOptions{
			ReasoningField: r.reasoning,
			Envelope:       r.envelope(),
			Choice:         choice,
			Tail:           r.tail,
			SinceArrival:   r.sinceArrival,
		})
		defer func() { r.count(rewriter.Usage()) }()
		return r.stream.relay(up, rewriter)
	}
	gathered := new(translate.ChatChoice)
	var tally translate.Tally
	err := up.decode(r.rq.wire.Decoder(r.ask), func(ev translate.Event) error {
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
	b := translate.ChatBody{
		Envelope: r.envelope(), Reasoning: r.reasoning, SingleCall: r.ask.SingleCall, OnlyChosen: r.ask.OnlyChosen,
		Extra: r.call.extra(r.instance, r.rq.demand.Draft),
	}
	return b.AppendBody(nil, r.gathered)
}
