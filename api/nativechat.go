package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// notStored is the code of an error about an answer that could not be stored.
const notStored = "not_stored"

// storeTimeout bounds how long an answer waits to be stored.
const storeTimeout = 30 * time.Second

// nativeChat is POST /api/v1/chat.
func nativeChat(c *endpoint.Call) error {
	rq, err := textRequest(c, native.WithDefaults, nil)
	if err != nil {
		return err
	}
	chat, bad := native.ParseChat(rq.body, rq.target.Model.Key, rq.caps)
	if bad != nil {
		return bad
	}
	servers := mcpServersOf(chat.Integrations)
	if err := mayUseServers(c, servers, nativeGates); err != nil {
		return err
	}
	r := &nativeRun{chat: chat, servers: servers}
	if chat.Store {
		r.id = newResponseID()
	}
	rq.demand.Conversation = r.id
	if err := r.recall(c, rq); err != nil {
		return err
	}
	rq.demand.ContextLength = chat.ContextLength
	r.loopRun = &loopRun{run: newRun(rq), teller: r}
	defer r.close()
	if chat.StorePartial {
		r.out.Announced = r.id
		if r.stream != nil {
			r.announced = &announcement{turn: func() *store.Turn { return r.turn(store.InProgress) }}
			defer r.withdraw()
		}
	}
	if r.stream != nil {
		rq.counting = r.tellPrompt
	}
	return r.answer()
}

// nativeFields are the names of the native chat.
var nativeFields = fieldNames{"messages": "input", "max_tokens": "max_output_tokens"}

// nativeRun is a request of the native chat on its way.
type nativeRun struct {
	*loopRun

	chat         *native.Chat
	id           string           // of the response, if it is stored
	servers      []mcpServer      // whose tools the model may call
	conversation []translate.Item // up to and with what the user says now
	said         []translate.Item // of it, what this turn adds

	loading  string    // the instance whose load is told; empty: none is
	loadTold time.Time // since when

	out native.Stream // also of an answer in one piece, which it gathers
}

// recall puts the conversation together: what was stored, the system prompt, and what the user says. The demand gets its name.
func (r *nativeRun) recall(c *endpoint.Call, rq *modelRequest) error {
	if r.chat.Previous != "" {
		turns, err := continued(c, r.chat.Previous)
		if err == nil && responses.IsEcho(turns[0].Request) {
			err = &store.NotFound{ID: r.chat.Previous}
		}
		if err != nil {
			return noPrevious(c, err)
		}
		if turns[len(turns)-1].Status == store.InProgress {
			return translate.Invalid("invalid_value", "previous_response_id", "The response "+endpoint.Quoted(r.chat.Previous)+" is still in progress: wait until its stream has ended.")
		}
		rq.demand.Conversation = turns[0].ID
		for _, turn := range turns {
			r.conversation = append(append(r.conversation, turn.In...), turn.Out...)
		}
	}
	if r.chat.System != nil {
		r.said = append(r.said, translate.SystemItem(*r.chat.System))
	}
	r.said = append(r.said, r.chat.Input)
	r.conversation = append(r.conversation, r.said...)
	seen, bad := rq.caps.Seen(rq.target.Model.Key, r.conversation)
	if bad != nil {
		return bad
	}
	r.conversation = seen
	return nil
}

// answer answers the request, by what a model says and by the tools that it calls.
func (r *nativeRun) answer() error {
	r.stored = true
	ctx := r.call.Request.Context()
	var err error
	if r.stream == nil {
		err = r.converse(ctx)
	} else {
		r.rq.demand.Notify = supervisor.NewNotifier()
		err = r.whileLoading(r.rq.demand.Notify.C(), func() error { return r.converse(ctx) })
		r.stream.Close() // from here on nobody else writes
	}
	if err == nil {
		err = r.storeTurn(store.Completed)
	} else if ended := node.Ended(ctx); ended != nil {
		err = ended
	} else if ctx.Err() != nil {
		r.storePartial()
		return ctx.Err() // whatever it looks like from here
	}
	switch {
	case err != nil && !r.call.Begun:
		return refined(err, nativeFields.refine)
	case r.stream == nil:
		r.call.WriteJSON(http.StatusOK, r.out.Answer.AppendBody(nil))
	default:
		r.end(err)
	}
	return nil
}

// converse has the model answer, with the tools of the chat.
func (r *nativeRun) converse(ctx context.Context) error {
	tools, err := toolbox(r.call, ctx, r.servers, r.rq.caps)
	if err != nil {
		return err
	}
	return r.loop(ctx, r.conversation, tools)
}

func (r *nativeRun) upstream(round *mcploop.Round) (*jsonbody.Body, *request.Chat, *translate.Error) {
	body, bad := r.chat.Upstream(round.Conversation, round.Tools())
	chat := r.chat.Chat // the fields of one round aren't those of another
	return body, &chat, bad
}

func (r *nativeRun) begin(dst []byte, resp *engineResponse, round int) []byte {
	in := resp.lease.Instance.ID
	switch {
	case round > 1:
	case r.stream != nil:
		r.awaitAnnounced()
		dst = r.out.Begin(dst, in)
	default:
		r.out.Answer = native.Answer{Instance: in}
		if took := resp.lease.LoadTime; took > 0 {
			r.out.Answer.Add(loadEnd(in, took))
		}
	}
	return dst
}

// tellPrompt tells of the progress of a prompt that is counted before it is answered. The engine then has it cached.
func (r *nativeRun) tellPrompt(resp *engineResponse, ev translate.Prompt) {
	r.tell(func(dst []byte) []byte {
		dst = r.Append(r.begin(dst, resp, r.number), translate.Round{Number: r.number})
		return r.Append(dst, ev)
	})
}

// Append appends what the client sees of an event.
func (r *nativeRun) Append(dst []byte, ev translate.Event) []byte { return r.out.Append(dst, ev) }

func (r *nativeRun) add(ev translate.Event) { r.out.Answer.Add(ev) }

func (r *nativeRun) isSeen() bool { return !r.out.Answer.RoundIsEmpty() }

func loadEnd(instance string, took time.Duration) translate.Load {
	return translate.Load{Phase: translate.PhaseEnd, Instance: instance, Seconds: took.Round(time.Millisecond).Seconds()}
}

// storeTurn stores the turn if the request asks for it. It is on disk when storeTurn returns.
func (r *nativeRun) storeTurn(status store.Status) error {
	if !r.chat.Store {
		return nil
	}
	answer := &r.out.Answer
	if status == store.Completed && !answer.IsComplete() {
		status = store.Incomplete
	}
	turn := r.turn(status)
	turn.Out, turn.Usage = answer.Items(), answer.Usage()
	if err := r.putTurn(turn); err != nil {
		return err
	}
	answer.ResponseID = turn.ID
	return nil
}

// turn is what is stored at the beginning of the answer.
func (r *nativeRun) turn(status store.Status) *store.Turn {
	return &store.Turn{
		ID: r.id, Parent: r.chat.Previous, Owner: r.call.Owner(), Model: r.rq.target.Model.Key, Dialect: resource.DialectNative,
		Status: status, In: translate.Settled(r.said), Created: time.Now(),
	}
}

// storePartial stores what was generated for a client that has disconnected, if the request asks for it.
func (r *nativeRun) storePartial() {
	if r.chat.StorePartial && !r.out.Answer.IsEmpty() {
		_ = r.storeTurn(store.Incomplete) // an error is logged; nobody is there to be told
	}
}

// newResponseID makes the id of a response.
func newResponseID() string {
	id := make([]byte, 24)
	_, _ = rand.Read(id) // never fails
	return "resp_" + hex.EncodeToString(id)
}

// notStoredError is the error of an answer that can't be stored.
func notStoredError(c *endpoint.Call, err error) error {
	_, isDeep := errors.AsType[*store.TooDeep](err)
	if _, isDeleted := errors.AsType[*store.NotFound](err); isDeep || isDeleted { // what it continues
		return noPrevious(c, err)
	}
	c.Site.Log.Error("an answer could not be stored", "request", c.ID, "error", err)
	if endpoint.IsDiskFull(err) {
		return &translate.Error{
			Kind: translate.KindDiskFull, Code: notStored,
			Message: `The answer could not be stored: the server's disk is full, or its quota on it. Free some space on it, or send "store": false.`,
		}
	}
	if errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrUnavailable) || openfiles.AreExhausted(err) {
		e := c.Error(err)
		e.Message = "The answer could not be stored. " + e.Message
		return e
	}
	return &translate.Error{
		Kind: translate.KindInternal, Code: notStored,
		Message: `The answer could not be stored; the server's log says why. With "store": false it can be had without.`,
	}
}

// noPrevious is the error of a response that can't be continued.
func noPrevious(c *endpoint.Call, err error) error {
	e := c.Error(err)
	switch e.Kind {
	case translate.KindResponseNotFound:
		e = about("previous_response_id", e)
		e.Code = "previous_response_not_found"
	case translate.KindInvalid:
		e = about("previous_response_id", e)
	}
	return e
}
