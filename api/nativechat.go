package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// notStored is the code of an error about an answer that could not be stored.
const notStored = "not_stored"

// storeTimeout bounds how long an answer waits to be stored.
const storeTimeout = 30 * time.Second

// nativeChat is POST /api/v1/chat.
func (c *call) nativeChat() error {
	rq, err := c.requestWith(native.WithDefaults)
	if err != nil {
		return err
	}
	m := rq.target.Model
	if m.Type == catalog.TypeEmbedding {
		return wrongModel(m, "generates no text: choose a language model.")
	}
	ask, bad := native.ParseChat(rq.body, m.Key, rq.caps)
	if bad != nil {
		return bad
	}
	run := &nativeRun{call: c, rq: rq, ask: ask}
	if err := run.recall(c.r.Context()); err != nil {
		return err
	}
	upstream, bad := ask.Upstream(run.conversation)
	if bad != nil {
		return bad
	}
	rq.demand.ContextLength = ask.ContextLength
	if err := c.reserveChat(rq, upstream, &ask.Chat); err != nil {
		return run.inOwnWords(err)
	}
	run.upstream = rq.engine.Chat(upstream, &ask.Chat, 0)
	defer func() { c.used(rq, run.out.Answer.Used()) }()
	if rq.stream {
		return run.streamed()
	}
	return run.whole()
}

// nativeRun is a request of the native chat on its way.
type nativeRun struct {
	call         *call
	rq           *modelRequest
	ask          *native.Chat
	conversation []translate.Item // up to and with what the user says now
	said         []translate.Item // of it, what this turn adds
	upstream     wire.Upstream    // what the engine is sent

	mu     sync.Mutex // what follows is of a stream, and the load's progress comes from elsewhere
	out    native.Stream
	frames []byte // the buffer in which events are encoded
}

// recall puts the conversation together: what was stored, the system prompt, and what the user says.
func (r *nativeRun) recall(ctx context.Context) error {
	if r.ask.Previous != "" {
		turns, err := r.call.node.Conversations().Chain(ctx, r.call.owner(), r.ask.Previous)
		if err != nil {
			return r.call.noPrevious(err)
		}
		for _, turn := range turns {
			r.conversation = append(append(r.conversation, turn.In...), turn.Out...)
		}
	}
	if r.ask.System != nil {
		r.said = append(r.said, translate.SystemItem(*r.ask.System))
	}
	r.said = append(r.said, r.ask.Input)
	r.conversation = append(r.conversation, r.said...)
	if r.rq.caps.Vision {
		return nil
	}
	for i := range r.conversation {
		if translate.HasImage(r.conversation[i].Parts) {
			return translate.Invalid("unsupported_content", "model",
				"The conversation has images, which the model "+r.rq.target.Model.Key+" does not take: choose a model with vision.")
		}
	}
	return nil
}

// whole answers in one piece.
func (r *nativeRun) whole() error {
	answer := &r.out.Answer
	err := r.call.exchange(r.call.r.Context(), r.rq.target, r.rq.demand, r.upstream, func(up *upstream) error {
		*answer = native.Answer{Instance: up.lease.Instance.ID}
		if up.lease.LoadTime > 0 {
			answer.Add(loadEnd(up.lease.Instance.ID, up.lease.LoadTime))
		}
		return retryable(up.decode(wire.Decoder(r.rq.engine, &r.ask.Chat), func(ev translate.Event) error {
			answer.Add(ev)
			return r.call.gather(ev)
		}, nil))
	})
	if err == nil {
		err = r.keep(store.Completed)
	}
	if err != nil {
		return r.inOwnWords(err)
	}
	r.call.writeJSON(http.StatusOK, answer.AppendBody(nil))
	return nil
}

func loadEnd(instance string, took time.Duration) translate.Load {
	return translate.Load{Phase: translate.PhaseEnd, Instance: instance, Seconds: took.Round(time.Millisecond).Seconds()}
}

// keep stores the turn, where it is to be stored. It is on disk when keep returns.
func (r *nativeRun) keep(status store.Status) error {
	answer := &r.out.Answer
	if !r.ask.Store {
		return nil
	}
	if status == store.Completed && !answer.IsComplete() {
		status = store.Incomplete
	}
	id := make([]byte, 24)
	_, _ = rand.Read(id) // never fails
	turn := &store.Turn{
		ID: "resp_" + hex.EncodeToString(id), Parent: r.ask.Previous, Owner: r.call.owner(), Model: r.rq.target.Model.Key,
		Status: status, In: r.said, Out: answer.Items(), Usage: answer.Usage(), Created: time.Now(),
	}
	// Also for a client that has gone: it may have seen all but the end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.call.r.Context()), storeTimeout)
	defer cancel()
	if err := r.call.node.Conversations().Put(ctx, turn); err != nil {
		return r.notKept(err)
	}
	answer.ResponseID = turn.ID
	return nil
}

func (r *nativeRun) notKept(err error) error {
	var deep *store.TooDeep
	var missing *store.NotFound // it was deleted meanwhile
	if errors.As(err, &deep) || errors.As(err, &missing) {
		return r.call.noPrevious(err)
	}
	return r.call.notStored(err)
}

// notStored is the error of an answer that can't be stored, for a reason that has nothing to do with the request.
func (c *call) notStored(err error) error {
	c.api.Log.Error("an answer could not be stored", "request", c.id, "error", err)
	if isDiskFull(err) {
		return &translate.Error{
			Kind: translate.KindDiskFull, Code: notStored,
			Message: `The answer could not be stored: the server's disk is full, or its quota on it. Free some space on it, or send "store": false.`,
		}
	}
	if errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrAway) || openfiles.AreExhausted(err) {
		e := c.asError(err)
		e.Message = "The answer could not be stored. " + e.Message
		return e
	}
	return &translate.Error{
		Kind: translate.KindInternal, Code: notStored,
		Message: `The answer could not be stored; the server's log says why. With "store": false it can be had without.`,
	}
}

// noPrevious is the error of a response that can't be continued.
func (c *call) noPrevious(err error) error {
	e := c.asError(err)
	switch e.Kind {
	case translate.KindResponseNotFound:
		e = about("previous_response_id", e)
		e.Code = "previous_response_not_found"
	case translate.KindInvalid:
		e = about("previous_response_id", e)
	}
	return e
}

// inOwnWords makes the fields that an error is about those of the native chat.
func (r *nativeRun) inOwnWords(err error) error {
	var e *translate.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Param {
	case "messages":
		return about("input", e)
	case "max_tokens":
		return about("max_output_tokens", e)
	default:
		return err
	}
}
