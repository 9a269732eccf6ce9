package api

import (
	"context"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// messages is POST /v1/messages.
func messages(c *endpoint.Call) error {
	rq, body, messages, err := messagesRequest(c, anthropic.ParseMessages)
	if err != nil {
		return err
	}
	if err := rq.reserveChat(body, &messages.Chat, 0); err != nil {
		return refined(err, messagesFields.refine)
	}
	r := &messagesRun{run: newRun(rq), messages: messages, id: endpoint.NewID("msg_")}
	r.out = anthropic.Stream{ID: r.id, Thinking: messages.Thinking, SingleCall: messages.Chat.SingleCall}
	defer r.close()
	if err := r.exchange(c.Request.Context(), r.chatPart(part{reply: r}, body, &messages.Chat)); err != nil {
		return refined(err, messagesFields.refine)
	}
	if r.stream == nil {
		c.WriteJSON(http.StatusOK, r.answer.AppendBody(nil))
	}
	return nil
}

// messagesRequest reads a request of the Messages API, and makes the OpenAI-style body of it that an engine's package takes.
func messagesRequest(c *endpoint.Call, parse func(*jsonbody.Body, request.Caps) (*anthropic.Messages, *translate.Error)) (*modelRequest, *jsonbody.Body, *anthropic.Messages, error) {
	rq, err := textRequest(c, anthropic.WithDefaults, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	messages, bad := parse(rq.body, rq.caps)
	if bad != nil {
		return nil, nil, nil, bad
	}
	body, bad := messages.Upstream()
	if bad != nil {
		return nil, nil, nil, bad
	}
	return rq, body, messages, nil
}

// messagesRun is a request of the Messages API on its way.
type messagesRun struct {
	*run

	messages *anthropic.Messages
	id       string // of the answer

	answer *anthropic.Answer // in one piece
	out    anthropic.Stream
}

// begin begins the answer. A stream's header isn't sent before the engine has said how long the prompt is. Until then a refusal
// is told by a status, unless the wait was so long that a ping had to keep the connection alive.
func (r *messagesRun) begin(_ context.Context, resp *engineResponse, recorder *wire.Recorder) (wire.Rewriter, error) {
	in, chat := resp.lease.Instance, &r.messages.Chat
	decoder := wire.DecoderOf(resp.engine, chat, recorder)
	if r.stream == nil {
		r.answer = &anthropic.Answer{
			ID: r.id, Model: in.ID, ContextLength: in.Spec.ContextLength, Thinking: r.messages.Thinking, SingleCall: chat.SingleCall,
		}
		return r.byEvents(resp, decoder, gatherer(r.answer.Add)), nil
	}
	r.out.Begin(in.ID, in.Spec.ContextLength)
	return r.byEvents(resp, decoder, &r.out), nil
}

func (r *messagesRun) isSeen(bool) bool { return !r.out.IsEmpty() }

// countTokens is POST /v1/messages/count_tokens. The engine's own template and tokenizer count, so the model is loaded for it.
func countTokens(c *endpoint.Call) error {
	rq, body, messages, err := messagesRequest(c, anthropic.ParseCount)
	if err != nil {
		return err
	}
	tokens, err := rq.countChat(body, &messages.Chat)
	if err != nil {
		return refined(err, messagesFields.refine)
	}
	c.WriteJSON(http.StatusOK, anthropic.CountBody(tokens))
	return nil
}

// countChat returns the number of tokens of a chat's prompt. body is what the engine would be sent.
func (rq *modelRequest) countChat(body *jsonbody.Body, chat *request.Chat) (tokens int, _ error) {
	if bounder, ok := rq.engine.(wire.Bounder); ok {
		return rq.countByAsking(bounder, rq.engine.Chat(body, chat, 0))
	}
	ask := func(engine wire.Engine, _ int) (wire.Upstream, *translate.Error) {
		counter, ok := engine.(wire.Counter)
		if !ok {
			return wire.Upstream{}, wrongEngine(rq.target.Model, "counts no tokens without answering: choose another model.")
		}
		return counter.Count(body, chat), nil
	}
	if _, bad := ask(rq.engine, 0); bad != nil {
		return 0, bad
	}
	rq.demand.Priority = true // it takes no time, and agents ask before they ask for more
	_, err := rq.inParts(1, ask, func(engine wire.Engine, _ int, said []byte) error {
		var bad *translate.Error
		if tokens, bad = engine.(wire.Counter).Counted(said); bad != nil {
			return bad
		}
		return nil
	})
	return tokens, err
}

// messagesFields are the names of the Messages API.
var messagesFields = fieldNames{
	"stop": "stop_sequences", "response_format": "output_config.format", "reasoning_effort": "output_config.effort",
	"thinking_budget_tokens": "thinking.budget_tokens", "chat_template_kwargs": "thinking",
}
