package anthropic

import (
	"context"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// createMessage is POST /v1/messages.
func createMessage(c *endpoint.Call) error {
	rq, body, messages, err := messagesRequest(c, anthropic.ParseMessages)
	if err != nil {
		return err
	}
	if err := rq.ReserveChat(body, &messages.Chat, 0); err != nil {
		return text.Refined(err, fieldNames.Refine)
	}
	r := &run{Run: text.NewRun(rq), messages: messages, id: endpoint.NewID("msg_")}
	r.out = anthropic.Stream{ID: r.id, Thinking: messages.Thinking, SingleCall: messages.Chat.SingleCall}
	defer r.Close()
	if err := r.Generate(c.Request.Context(), text.Part{Reply: r, Task: &text.ChatTask{Body: body, Chat: &messages.Chat}}); err != nil {
		return text.Refined(err, fieldNames.Refine)
	}
	if r.Stream == nil {
		c.WriteJSON(http.StatusOK, r.answer.AppendBody(nil))
	}
	return nil
}

type parser func(*jsonbody.Body, request.Caps) (*anthropic.Messages, *translate.Error)

// messagesRequest reads a request of the Messages API, and makes the OpenAI-style body of it that an engine's package takes.
func messagesRequest(c *endpoint.Call, parse parser) (*text.Request, *jsonbody.Body, *anthropic.Messages, error) {
	rq, err := text.Read(c, anthropic.WithDefaults, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	messages, bad := parse(rq.Body, rq.Caps)
	if bad != nil {
		return nil, nil, nil, bad
	}
	body, bad := messages.Upstream()
	if bad != nil {
		return nil, nil, nil, bad
	}
	return rq, body, messages, nil
}

type run struct {
	*text.Run

	messages *anthropic.Messages
	id       string // of the answer

	answer *anthropic.Answer // in one piece
	out    anthropic.Stream
}

// Begin begins the answer. Until the engine has said how long the prompt is, no header is sent, so that a refusal has a status.
func (r *run) Begin(_ context.Context, resp *text.Response, recorder *wire.Recorder) (wire.Rewriter, error) {
	in, chat := resp.Lease.Instance, &r.messages.Chat
	decoder := wire.DecoderOf(resp.Engine, chat, recorder)
	if r.Stream == nil {
		r.answer = &anthropic.Answer{
			ID: r.id, Model: in.ID, ContextLength: in.Spec.ContextLength, Thinking: r.messages.Thinking, SingleCall: chat.SingleCall,
		}
		return r.ByEvents(resp, decoder, text.Gatherer(r.answer.Add)), nil
	}
	r.out.Begin(in.ID, in.Spec.ContextLength)
	return r.ByEvents(resp, decoder, &r.out), nil
}

func (r *run) IsSeen(bool) bool { return !r.out.IsEmpty() }

// countTokens is POST /v1/messages/count_tokens. The engine's own template and tokenizer count, so the model is loaded for it.
func countTokens(c *endpoint.Call) error {
	rq, body, messages, err := messagesRequest(c, anthropic.ParseCount)
	if err != nil {
		return err
	}
	tokens, err := rq.CountChat(body, &messages.Chat)
	if err != nil {
		return text.Refined(err, fieldNames.Refine)
	}
	c.WriteJSON(http.StatusOK, anthropic.CountBody(tokens))
	return nil
}

var fieldNames = text.FieldNames{
	"stop": "stop_sequences", "response_format": "output_config.format", "reasoning_effort": "output_config.effort",
	"thinking_budget_tokens": "thinking.budget_tokens", "chat_template_kwargs": "thinking",
}
