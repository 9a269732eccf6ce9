package ollama

import (
	"context"
	"net/http"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// answerText answers a request for text. what is what a model has to support for it.
func answerText(c *endpoint.Call, what string, parse func(*jsonbody.Body, request.Caps) (*ollama.Request, *translate.Error)) error {
	rq, err := text.ReadAny(c, ollama.WithDefaults, nil)
	if err != nil {
		return err
	}
	asked, bad := parse(rq.Body, rq.Caps)
	switch {
	case bad != nil:
		return bad
	case rq.Target.Model.Type == catalog.TypeEmbedding && !asked.IsEmpty:
		return ollama.LacksSupport(asked.Model, what)
	}
	rq.Streams, rq.Demand.ContextLength = asked.Streams, asked.Context
	keep := text.NewKeepAlive(c, asked.KeepAlive)
	keep.Apply(rq)
	r := &run{asked: asked}
	r.answer = ollama.Answer{
		Model: asked.Model, Generates: what == "generate", IsWhole: !asked.Streams, Logprobs: asked.Chat.Logprobs,
		OnlyChosen: asked.Chat.OnlyChosen, Memory: asked.Memory,
		Now: time.Now, Took: func() (total, load time.Duration) { return tookUntilReady(c) },
	}
	if asked.IsEmpty {
		return answerLoad(c, rq, keep, &r.answer)
	}
	defer keep.End()
	if err := r.prepare(rq); err != nil {
		return err
	}
	r.Run = text.NewRun(rq)
	defer r.Close()
	r.OnLeased = keep.Leased
	if err := r.Generate(c.Request.Context(), r.part()); err != nil {
		return text.Refined(err, fieldNames.Refine)
	}
	if r.Stream == nil {
		c.WriteJSON(http.StatusOK, r.whole)
	}
	return nil
}

// tookUntilReady is the time since the request arrived, and what of it passed until the model was ready.
func tookUntilReady(c *endpoint.Call) (total, load time.Duration) {
	c.Ledger.Mu.Lock()
	defer c.Ledger.Mu.Unlock()
	return time.Since(c.Arrived), c.Ledger.Summary.Queue + c.Ledger.Summary.Load + c.Ledger.Summary.Restore
}

type run struct {
	*text.Run

	asked *ollama.Request
	body  *jsonbody.Body // as engines take it

	answer  ollama.Answer // as it begins
	current ollama.Answer
	whole   []byte // the answer in one piece
}

func (r *run) prepare(rq *text.Request) error {
	var bad *translate.Error
	if r.body, bad = r.asked.Upstream(); bad != nil {
		return bad
	}
	if r.asked.Completion == nil {
		return text.Refined(rq.ReserveChat(r.body, &r.asked.Chat, 0), fieldNames.Refine)
	}
	if _, bad := text.EngineFor[wire.Completer](rq, rq.Engine,
		`completes no texts: leave out "raw" and "suffix", or choose another model.`); bad != nil {
		return bad
	}
	rq.Body = r.body
	rq.Demand.Prompt = rq.Chain(func(m *prefix.Maker) { wire.AddText(r.asked.Completion, 0, m) })
	return text.Refined(rq.ReserveCompletion(r.asked.Completion), fieldNames.Refine)
}

func (r *run) part() text.Part {
	of := r.asked.Completion
	if of == nil {
		return text.Part{Reply: r, Task: &text.ChatTask{Body: r.body, Chat: &r.asked.Chat}}
	}
	return text.Part{Reply: r, Task: &text.CompletionTask{Model: &r.Request.Target.Model, Body: r.body, Completion: of}}
}

func (r *run) Begin(_ context.Context, resp *text.Response, recorder *wire.Recorder) (wire.Rewriter, error) {
	r.current, r.whole = r.answer, nil
	var decoder translate.Decoder = recorder
	if r.asked.Completion == nil {
		decoder = wire.DecoderOf(resp.Engine, &r.asked.Chat, recorder)
	}
	if r.Stream == nil {
		return r.ByEvents(resp, decoder, text.Gatherer(func(ev translate.Event) { r.whole = r.current.Append(r.whole, ev) })), nil
	}
	r.Stream.Await()
	return r.ByEvents(resp, decoder, &r.current), nil
}

// answerLoad answers a request without a prompt: it loads the model, or, with a keep_alive of 0, unloads it.
func answerLoad(c *endpoint.Call, rq *text.Request, keep *text.KeepAlive, answer *ollama.Answer) error {
	reason := "load"
	var s *endpoint.Stream
	if rq.Streams {
		s = c.NewStream() // a load may take minutes
		defer s.Close()
	}
	if keep.Unloads() {
		reason = "unload"
		if err := text.UnloadModel(c, rq.Target); err != nil {
			return err
		}
	} else {
		defer keep.End()
		err := rq.OnLease(c.Request.Context(), rq.Demand, 1, func() [][]byte { return nil }, func(lease *supervisor.Lease) error {
			keep.Leased(lease)
			return nil
		})
		if err != nil {
			return err
		}
	}
	body := answer.AppendNothing(nil, reason)
	if s != nil {
		s.Send(body)
		return nil
	}
	c.WriteJSON(http.StatusOK, body)
	return nil
}

var fieldNames = text.FieldNames{ //nolint:gosec // no credentials
	"response_format": "format", "reasoning_effort": "think", "chat_template_kwargs": "think", "max_tokens": "options.num_predict",
	"stop": "options.stop",
}
