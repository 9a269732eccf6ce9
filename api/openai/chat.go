package openai

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// chatCompletions is POST /v1/chat/completions and POST /api/v0/chat/completions.
func chatCompletions(c *endpoint.Call) error {
	rq, err := text.Read(c, openai.WithDefaults, nil)
	if err != nil {
		return err
	}
	chat, bad := openai.ParseChat(rq.Body, rq.Caps)
	if bad != nil {
		return bad
	}
	if ctx := rq.Call.Request.Context(); rq.Call.Site.Log.Enabled(ctx, slog.LevelDebug) {
		if dropped := rq.Engine.Drops(rq.Body, chat); len(dropped) > 0 {
			rq.Call.Site.Log.DebugContext(ctx, "fields that the engine is not sent", "request", rq.Call.ID, "fields", dropped)
		}
	}
	if err := rq.ReserveChat(rq.Body, chat, 0); err != nil {
		return err
	}
	r := &chatRun{Run: text.NewRun(rq), chat: chat}
	defer r.Close()
	if r.gathered = r.only[:]; chat.N > 1 {
		r.gathered = make([]*openai.ChatChoice, chat.N)
	}
	r.answer = openai.ChatBody{
		Envelope:  openai.Envelope{ID: endpoint.NewID("chatcmpl-"), Created: time.Now().Unix()},
		Reasoning: c.Node.Settings().ReasoningField, SingleCall: chat.SingleCall, OnlyChosen: chat.OnlyChosen, Custom: chat.Custom,
	}
	if err := r.Choices(chat.N, func() { r.begun = false }, r.choice); err != nil {
		return withFigures(r.Run, err)
	}
	if r.Stream == nil {
		buf := endpoint.Buffers.Get().(*[]byte)
		defer c.Client.PutBuffer(buf)
		c.WriteJSON(http.StatusOK, r.answer.AppendBody((*buf)[:0], r.gathered))
	}
	return nil
}

type chatRun struct {
	*text.Run

	chat     *request.Chat
	answer   openai.ChatBody       // what all choices have in common, streamed or not
	begun    bool                  // an engine has begun to answer
	tail     *openai.ChatTail      // of a stream
	gathered []*openai.ChatChoice  // of an answer in one piece
	only     [1]*openai.ChatChoice // what gathered is where there is one choice
}

func (r *chatRun) choice(i int) text.Part {
	reply := &chatReply{chatRun: r, asks: text.ChatTask{Body: r.Request.Body, Chat: r.chat, Choice: i}}
	return text.Part{Index: i, Reply: reply, Task: &reply.asks}
}

// begin notes which instance answers. Choices have it in common.
func (r *chatRun) begin(in *supervisor.Info) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.begun {
		return
	}
	r.begun, r.Instance = true, in
	r.answer.Model, r.answer.Fingerprint, r.answer.Extra = in.ID, in.Build.Version, extra(r.Call, in, r.Request.Demand.Draft)
	if r.Stream != nil {
		r.tail = openai.NewChatTail(r.chat.N, r.Request.IncludeUsage, r.answer.Extra)
	}
}

type chatReply struct {
	*chatRun

	asks   text.ChatTask
	chunks *openai.ChatChunks // of a stream
}

// Begin passes the engine's chunks on where its stream allows that and the answer doesn't have to be looked into.
func (r *chatReply) Begin(_ context.Context, resp *text.Response, decoder *wire.Recorder) (wire.Rewriter, error) {
	r.begin(&resp.Lease.Instance)
	engine, chat := resp.Engine, r.chat
	if r.Stream == nil {
		gathered := new(openai.ChatChoice)
		r.gathered[r.asks.Choice] = gathered
		return r.ByEvents(resp, wire.DecoderOf(engine, chat, decoder), text.Gatherer(gathered.Add)), nil
	}
	r.Stream.Await()
	r.chunks = openai.NewChatChunks(openai.ChunkOptions{
		Envelope: r.answer.Envelope, Reasoning: r.answer.Reasoning, OnlyChosen: chat.OnlyChosen, Custom: chat.Custom,
		SinceArrival: r.SinceArrival, Choice: r.asks.Choice, Tail: r.tail,
	})
	if decoder == nil {
		return engine.(wire.Passer).Rewriter(chat, r.chunks), nil
	}
	return r.ByEvents(resp, wire.DecoderOf(engine, chat, decoder), openai.NewChatStream(r.chunks, chat.SingleCall)), nil
}

// Passes reports whether the engine's own stream is passed on, and not decoded.
func (r *chatReply) Passes(resp *text.Response) bool {
	_, ok := resp.Engine.(wire.Passer)
	chat := r.chat
	isPlain := !chat.Forced && chat.Either == nil && chat.Promises.IsEmpty() && len(chat.Stops) == 0 && chat.Custom == nil
	return ok && r.Stream != nil && isPlain && !wire.ReadsCalls(resp.Engine, chat) && wire.ThoughtEnd(resp.Engine, r.asks.Body, chat) == ""
}

// Resume goes on by events where the chunks of another engine were passed on.
func (r *chatReply) Resume(resp *text.Response, decoder *wire.Recorder) wire.Rewriter {
	return r.ByEvents(resp, wire.DecoderOf(resp.Engine, r.chat, decoder), openai.ResumeChatStream(r.chunks, r.chat.SingleCall))
}
