package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// chatCompletions is POST /v1/chat/completions and POST /api/v0/chat/completions.
func chatCompletions(c *endpoint.Call) error {
	rq, err := textRequest(c, openai.WithDefaults, nil)
	if err != nil {
		return err
	}
	chat, bad := openai.ParseChat(rq.body, rq.caps)
	if bad != nil {
		return bad
	}
	rq.noteDropped(chat)
	if err := rq.reserveChat(rq.body, chat, 0); err != nil {
		return err
	}
	r := &chatRun{run: newRun(rq), chat: chat}
	defer r.close()
	if r.gathered = r.only[:]; chat.N > 1 {
		r.gathered = make([]*openai.ChatChoice, chat.N)
	}
	r.answer = openai.ChatBody{
		Envelope:  openai.Envelope{ID: endpoint.NewID("chatcmpl-"), Created: time.Now().Unix()},
		Reasoning: c.Node.Settings().ReasoningField, SingleCall: chat.SingleCall, OnlyChosen: chat.OnlyChosen, Custom: chat.Custom,
	}
	if err := r.choices(chat.N, func() { r.begun = false }, r.choice); err != nil {
		return r.withFigures(err)
	}
	if r.stream == nil {
		buf := endpoint.Buffers.Get().(*[]byte)
		defer c.PutBuffer(buf)
		c.WriteJSON(http.StatusOK, r.answer.AppendBody((*buf)[:0], r.gathered))
	}
	return nil
}

// noteDropped logs which fields of a request don't reach the engine, for those who look for one.
func (rq *modelRequest) noteDropped(chat *request.Chat) {
	if ctx := rq.call.Request.Context(); rq.call.Site.Log.Enabled(ctx, slog.LevelDebug) {
		if dropped := rq.engine.Drops(rq.body, chat); len(dropped) > 0 {
			rq.call.Site.Log.DebugContext(ctx, "fields that the engine is not sent", "request", rq.call.ID, "fields", dropped)
		}
	}
}

// chatRun is a request for a chat completion on its way.
type chatRun struct {
	*run

	chat     *request.Chat
	answer   openai.ChatBody       // what all choices have in common, streamed or not
	begun    bool                  // an engine has begun to answer
	tail     *openai.ChatTail      // of a stream
	gathered []*openai.ChatChoice  // of an answer in one piece
	only     [1]*openai.ChatChoice // what gathered is where there is one choice
}

// choice is the part of a run that makes a choice.
func (r *chatRun) choice(i int) part {
	reply := &chatReply{chatRun: r, asks: chatQuestion{r.rq.body, r.chat, i}}
	return part{index: i, reply: reply, asks: &reply.asks}
}

// begin notes which instance answers. Choices have it in common.
func (r *chatRun) begin(in *supervisor.Info) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun {
		return
	}
	r.begun, r.instance = true, in
	r.answer.Model, r.answer.Fingerprint, r.answer.Extra = in.ID, in.Build.Version, extra(r.call, in, r.rq.demand.Draft)
	if r.stream != nil {
		r.tail = openai.NewChatTail(r.chat.N, r.rq.includeUsage, r.answer.Extra)
	}
}

// chatReply is one choice of a chat completion.
type chatReply struct {
	*chatRun

	asks   chatQuestion
	chunks *openai.ChatChunks // of a stream
}

// begin passes the engine's chunks on where its stream allows that and the answer doesn't have to be looked into.
func (r *chatReply) begin(_ context.Context, resp *engineResponse, decoder *wire.Recorder) (wire.Rewriter, error) {
	r.chatRun.begin(&resp.lease.Instance)
	engine, chat := resp.engine, r.chat
	if r.stream == nil {
		gathered := new(openai.ChatChoice)
		r.gathered[r.asks.choice] = gathered
		return r.byEvents(resp, wire.DecoderOf(engine, chat, decoder), gatherer(gathered.Add)), nil
	}
	r.stream.Await()
	r.chunks = openai.NewChatChunks(openai.ChunkOptions{
		Envelope: r.answer.Envelope, Reasoning: r.answer.Reasoning, OnlyChosen: chat.OnlyChosen, Custom: chat.Custom,
		SinceArrival: r.sinceArrival, Choice: r.asks.choice, Tail: r.tail,
	})
	if decoder == nil {
		return engine.(wire.Passer).Rewriter(chat, r.chunks), nil
	}
	return r.byEvents(resp, wire.DecoderOf(engine, chat, decoder), openai.NewChatStream(r.chunks, chat.SingleCall)), nil
}

// passes reports whether the engine's own stream is passed on, and not decoded.
func (r *chatReply) passes(resp *engineResponse) bool {
	_, ok := resp.engine.(wire.Passer)
	return ok && r.stream != nil && !r.chat.Forced && r.chat.Either == nil && r.chat.Promises.IsEmpty() && len(r.chat.Stops) == 0 && r.chat.Custom == nil &&
		!wire.ReadsCalls(resp.engine, r.chat) && wire.ThoughtEnd(resp.engine, r.asks.body, r.chat) == ""
}

// resume goes on by events where the chunks of another engine were passed on.
func (r *chatReply) resume(resp *engineResponse, decoder *wire.Recorder) wire.Rewriter {
	return r.byEvents(resp, wire.DecoderOf(resp.engine, r.chat, decoder), openai.ResumeChatStream(r.chunks, r.chat.SingleCall))
}

func (r *chatReply) isSeen(sent bool) bool { return sent }
