package api

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// messages is POST /v1/messages.
func (c *call) messages() error {
	rq, upstream, ask, err := c.messagesRequest(anthropic.ParseMessages)
	if err != nil {
		return err
	}
	if err := c.reserveChat(rq, upstream, &ask.Chat); err != nil {
		return inMessagesWords(err)
	}
	run := &messagesRun{call: c, rq: rq, ask: ask, id: "msg_" + strings.ToLower(rand.Text())}
	run.upstream = rq.engine.Chat(upstream, &ask.Chat, 0)
	defer func() { c.used(rq, run.tally.Usage()) }()
	if rq.stream {
		err = run.streamed()
	} else {
		err = run.whole()
	}
	return inMessagesWords(err)
}

// messagesRequest reads a request of the Messages API, and makes what the engine is to be asked of it. It is
// OpenAI-style.
func (c *call) messagesRequest(parse func(*jsonbody.Body, request.Caps) (*anthropic.Messages, *translate.Error)) (*modelRequest, *jsonbody.Body, *anthropic.Messages, error) {
	rq, err := c.requestWith(anthropic.WithDefaults)
	if err != nil {
		return nil, nil, nil, err
	}
	if m := rq.target.Model; m.Type == catalog.TypeEmbedding {
		return nil, nil, nil, wrongModel(m, "generates no text: choose a language model.")
	}
	ask, bad := parse(rq.body, rq.caps)
	if bad != nil {
		return nil, nil, nil, bad
	}
	upstream, bad := ask.Upstream()
	if bad != nil {
		return nil, nil, nil, bad
	}
	return rq, upstream, ask, nil
}

// messagesRun is a request of the Messages API on its way.
type messagesRun struct {
	call     *call
	rq       *modelRequest
	ask      *anthropic.Messages
	id       string        // of the answer
	upstream wire.Upstream // what the engine is sent

	tally translate.Tally
}

// whole answers in one piece.
func (r *messagesRun) whole() error {
	var answer *anthropic.Answer
	err := r.call.exchange(r.call.r.Context(), r.rq.target, r.rq.demand, r.upstream, func(up *upstream) error {
		in := up.lease.Instance
		r.tally = translate.Tally{}
		answer = &anthropic.Answer{
			ID: r.id, Model: in.ID, ContextLength: in.Spec.ContextLength, Thinking: r.ask.Thinking, SingleCall: r.ask.Chat.SingleCall,
		}
		return retryable(up.decode(wire.Decoder(r.rq.engine, &r.ask.Chat), func(ev translate.Event) error {
			r.tally.Add(ev)
			answer.Add(ev)
			return r.call.gather(ev)
		}, nil))
	})
	if err != nil {
		return err
	}
	r.call.writeJSON(http.StatusOK, answer.AppendBody(nil))
	return nil
}

// streamed answers by events. The stream begins once the engine has said how long the prompt is. Until then a refusal is
// told by a status, unless the wait was so long that a ping had to keep the connection alive.
func (r *messagesRun) streamed() error {
	s := r.call.newStream()
	defer s.close()
	out := &anthropic.Stream{ID: r.id, Thinking: r.ask.Thinking, SingleCall: r.ask.Chat.SingleCall}
	var frames []byte
	return r.call.exchange(r.call.r.Context(), r.rq.target, r.rq.demand, r.upstream, func(up *upstream) error {
		out.Begin(up.lease.Instance.ID, up.lease.Instance.Spec.ContextLength)
		frames, r.tally = frames[:0], translate.Tally{}
		err := up.decode(wire.Decoder(r.rq.engine, &r.ask.Chat), func(ev translate.Event) error {
			r.tally.Add(ev)
			frames = out.Append(frames, ev)
			return nil
		}, func() {
			s.send(frames) // that the client has gone shows by the context
			frames = frames[:0]
		})
		if out.IsEmpty() {
			return retryable(err)
		}
		return err
	})
}

// countTokens is POST /v1/messages/count_tokens. The engine's own template and tokenizer count, so the model is loaded for it.
func (c *call) countTokens() error {
	rq, upstream, ask, err := c.messagesRequest(anthropic.ParseCount)
	if err != nil {
		return err
	}
	counter, ok := rq.engine.(wire.Counter)
	if !ok {
		return wrongEngine(rq.target.Model, "counts no tokens without answering: choose another model.")
	}
	rq.demand.Priority = true // it takes no time, and agents ask before they ask for more
	tokens := 0
	_, err = c.inParts(rq, 1, func(int) wire.Upstream { return counter.Count(upstream, &ask.Chat) }, func(_ int, said []byte) error {
		var bad *translate.Error
		if tokens, bad = counter.Counted(said); bad != nil {
			return bad
		}
		return nil
	})
	if err != nil {
		return inMessagesWords(err)
	}
	c.writeJSON(http.StatusOK, anthropic.CountBody(tokens))
	return nil
}

// messagesWords are what the Messages API calls the fields of the engine's request.
var messagesWords = map[string]string{
	"stop": "stop_sequences", "response_format": "output_config.format", "reasoning_effort": "output_config.effort",
	"thinking_budget_tokens": "thinking.budget_tokens", "chat_template_kwargs": "thinking",
}

// inMessagesWords makes the field that an error is about one of the Messages API.
func inMessagesWords(err error) error {
	var e *translate.Error
	if errors.As(err, &e) && messagesWords[e.Param] != "" {
		return about(messagesWords[e.Param], e)
	}
	return err
}
