package native

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// chat is POST /api/v1/chat.
func chat(c *endpoint.Call) error {
	rq, err := text.Read(c, native.WithDefaults, nil)
	if err != nil {
		return err
	}
	chat, bad := native.ParseChat(rq.Body, rq.Target.Model.Key, rq.Caps)
	if bad != nil {
		return bad
	}
	if err := text.AuthorizeServers(c, chat.Integrations, text.NativeGates); err != nil {
		return err
	}
	r := &run{chat: chat, out: output{given: chat.Prefill}}
	if chat.Store {
		r.id = text.NewResponseID()
	}
	rq.Demand.Conversation = r.id
	if err := r.recall(c, rq); err != nil {
		return err
	}
	rq.Demand.ContextLength = chat.ContextLength
	r.owner, r.model = c.Owner(), rq.Target.Model.Key
	rq.Counting = func(resp *text.Response, ev translate.Prompt) { // the engine then has the prompt cached
		r.Send(func(dst []byte) []byte {
			dst = r.out.Append(r.BeginRound(dst, resp, r.Number), translate.Round{Number: r.Number})
			return r.out.Append(dst, ev)
		})
	}
	if chat.Background {
		return r.inBackground(c, rq)
	}
	r.Loop = &text.Loop{Run: text.NewRun(rq), Writer: r, Output: &r.out, Fields: fieldNames}
	defer r.Close()
	if chat.StorePartial {
		r.out.Announced = r.id
		if r.Stream != nil {
			r.Beginning = &text.Beginning{Turn: func() *store.Turn { return r.turn(store.InProgress) }}
			defer r.WithdrawBeginning()
		}
	}
	if r.Stream == nil {
		rq.Counting = nil
	}
	return r.Respond(r.generate)
}

var fieldNames = text.FieldNames{"messages": "input", "max_tokens": "max_output_tokens"}

type run struct {
	*text.Loop

	chat *native.Chat
	id   string // of the response, if it is stored

	owner, model string // of the response

	conversation []translate.Item // up to and with what the user says now
	said         []translate.Item // of it, what this turn adds

	loading   string    // the instance whose load is told; empty: none is
	loadSince time.Time // since when

	out output // also of an answer in one piece, which it gathers
}

// recall puts the conversation together: what was stored, the system prompt, and what the user says. The demand gets its name.
func (r *run) recall(c *endpoint.Call, rq *text.Request) error {
	if r.chat.Previous != "" {
		turns, err := text.Previous(c, r.chat.Previous)
		if err == nil && responses.IsEcho(turns[0].Request) {
			err = &store.NotFound{ID: r.chat.Previous}
		}
		if err != nil {
			return text.NoPrevious(c, err)
		}
		if turns[len(turns)-1].Status == store.InProgress {
			return translate.Invalid("invalid_value", "previous_response_id",
				"The response "+endpoint.Quoted(r.chat.Previous)+" is still in progress: wait until its stream has ended.")
		}
		rq.Demand.Conversation = turns[0].ID
		for _, turn := range turns {
			r.conversation = append(append(r.conversation, turn.In...), turn.Out...)
		}
	}
	if r.chat.System != nil {
		r.said = append(r.said, translate.SystemItem(*r.chat.System))
	}
	r.said = append(r.said, r.chat.Input)
	r.conversation = append(r.conversation, r.said...)
	if r.chat.Prefill != "" { // an engine goes on with the last message if it is the assistant's
		parts := []translate.Part{{Text: r.chat.Prefill}}
		begun := translate.Item{Kind: translate.ItemMessage, Role: translate.RoleAssistant, Parts: parts}
		r.conversation = append(r.conversation, begun)
	}
	seen, bad := rq.Caps.Seen(rq.Target.Model.Key, r.conversation)
	if bad != nil {
		return bad
	}
	r.conversation = seen
	return nil
}

// generate has the model answer, with the tools of the chat, and tells a stream of the load.
func (r *run) generate(ctx context.Context) error {
	converse := func() error {
		tools, err := text.Toolbox(ctx, r.Call, r.chat.Integrations, r.Request.Caps)
		if err != nil {
			return err
		}
		if r.Call.Background != nil && tools != nil {
			tools.Approval, tools.AsksAll = r.Call.Background.Ask, r.chat.ToolApproval
		}
		return r.Rounds(ctx, r.conversation, tools)
	}
	if r.Stream == nil {
		return converse()
	}
	r.Request.Demand.Notify = supervisor.NewNotifier()
	return r.whileLoading(r.Request.Demand.Notify.C(), converse)
}

func (r *run) Upstream(round *mcploop.Round) (*jsonbody.Body, *request.Chat, *translate.Error) {
	body, bad := r.chat.Upstream(round.Conversation, round.Tools())
	chat := r.chat.Chat // the fields of one round aren't those of another
	return body, &chat, bad
}

func (r *run) BeginRound(dst []byte, resp *text.Response, round int) []byte {
	in := resp.Lease.Instance.ID
	switch {
	case round > 1:
	case r.Stream != nil:
		r.AwaitBeginning()
		dst = r.out.Begin(dst, in)
	default:
		r.out.Answer = native.Answer{Instance: in}
		if took := resp.Lease.LoadTime; took > 0 {
			r.out.Answer.Add(loadEnd(in, took))
		}
	}
	r.out.ContextLength = resp.Lease.Instance.Spec.ContextLength
	return dst
}

// output is the stream, or the answer in one piece, with the beginning that the request has given before what the model says first.
type output struct {
	native.Stream
	given string // that beginning
	left  string // the same, until it is added
}

func (o *output) Append(dst []byte, ev translate.Event) []byte {
	o.withPrefill(ev, func(ev translate.Event) { dst = o.Stream.Append(dst, ev) })
	return dst
}

func (o *output) Add(ev translate.Event) { o.withPrefill(ev, o.Answer.Add) }

func (o *output) withPrefill(ev translate.Event, add func(translate.Event)) {
	switch ev := ev.(type) {
	case translate.Round:
		o.left = ""
		if ev.Number == 1 {
			o.left = o.given
		}
	case translate.Text, translate.Reasoning, translate.CallStart, translate.Finish:
		if o.left != "" {
			add(translate.Text{Text: o.left})
			o.left = ""
		}
	}
	add(ev)
}

func loadEnd(instance string, took time.Duration) translate.Load {
	return translate.Load{Phase: translate.PhaseEnd, Instance: instance, Seconds: took.Round(time.Millisecond).Seconds()}
}

// storeTurn stores the turn if the request asks for it. It is on disk when storeTurn returns.
func (r *run) storeTurn(status store.Status) error {
	if !r.chat.Store {
		return nil
	}
	answer := &r.out.Answer
	if status == store.Completed && !answer.IsComplete() {
		status = store.Incomplete
	}
	turn := r.turn(status)
	turn.Out, turn.Usage, turn.Figures = answer.Items(), answer.Usage(), answer.Figures()
	if err := r.StoreTurn(turn); err != nil {
		return err
	}
	answer.ResponseID = turn.ID
	return nil
}

func (r *run) turn(status store.Status) *store.Turn {
	return &store.Turn{
		ID: r.id, Parent: r.chat.Previous, Owner: r.owner, Model: r.model, Dialect: resource.DialectNative,
		Status: status, In: translate.Settled(r.said), Created: time.Now(),
	}
}

func (r *run) Complete() error { return r.storeTurn(store.Completed) }

// Interrupted stores what was generated for a client that has disconnected, if the request asks for it, or that has cancelled the answer.
// If there is nothing of a cancelled one, the question is discarded.
func (r *run) Interrupted(ctx context.Context) error {
	isCancelled, isEmpty := errors.Is(context.Cause(ctx), runs.ErrCancelled), r.out.IsEmpty()
	if !isEmpty && (isCancelled || r.chat.StorePartial) {
		_ = r.storeTurn(store.Incomplete) // an error is logged; nobody is there to be told
	}
	if !isCancelled {
		return ctx.Err()
	}
	r.Call.Ledger.Summary.Outcome = record.OutcomeCancelled
	if isEmpty {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
		defer cancel()
		_ = r.Call.Node.Stores.Get().Delete(ctx, r.owner, r.id) // else it is stored as cancelled
		_ = r.Call.Background.Finish(ctx, r.turn(store.Cancelled))
	}
	r.Send(r.out.End)
	return nil
}

// whileLoading has the answer generated, and tells of the load meanwhile, but nothing more once it has returned.
func (r *run) whileLoading(loading <-chan supervisor.Progress, generate func() error) error {
	isLeased := text.TellProgress(r.Call.Request.Context(), loading, func(p supervisor.Progress) {
		r.AwaitBeginning()
		if p.LoadTime > 0 { // but other requests have its slots for now
			r.loading = ""
			r.Event(loadEnd(p.Instance, p.LoadTime))
			return
		}
		if r.loading == "" {
			r.loading, r.loadSince = p.Instance, time.Now()
		}
		r.Event(translate.Load{Phase: translate.PhaseProgress, Instance: p.Instance, Progress: p.Loaded})
	})
	defer isLeased()
	r.OnLeased = func(lease *supervisor.Lease) {
		isLeased()
		r.StoreBeginning()
		instance, took := lease.Instance.ID, lease.LoadTime
		if took == 0 && r.loading != "" { // another instance has become free first
			instance, took = r.loading, time.Since(r.loadSince)
		}
		if took > 0 {
			r.AwaitBeginning()
			r.Event(loadEnd(instance, took)) // also where the engine then refuses the request
		}
		r.loading = ""
	}
	return generate()
}

// expectedInstance is the instance that is told of before one is chosen.
func expectedInstance(rq *text.Request) string {
	return cmp.Or(rq.Target.Instance, rq.Target.Model.Key)
}

// AppendEnd appends the end of the stream. Until the model is being loaded, or an engine has begun to answer, an error has a status.
func (r *run) AppendEnd(dst []byte, e *translate.Error) []byte {
	if !r.out.Begun() { // but the header has been sent, with a comment
		r.out.Announced = "" // it isn't stored
		dst = r.out.Begin(dst, expectedInstance(r.Request))
	}
	if e != nil {
		dst = r.out.Append(dst, translate.Fault{Err: e})
		if (!r.out.IsEmpty() || r.out.Announced != "") && r.out.ResponseID == "" && e.Code != text.CodeNotStored {
			_ = r.storeTurn(store.Failed) // the error event is about what came first
		}
	}
	return r.out.End(dst)
}

// inBackground begins an answer that no client has to wait for, and answers with its stream, or with the response that has begun.
func (r *run) inBackground(c *endpoint.Call, rq *text.Request) error {
	follows := rq.Streams
	turn := r.turn(store.InProgress)
	begun := *turn
	r.out.Announced = r.id
	r.Loop = &text.Loop{Writer: r, Output: &r.out, Fields: fieldNames}
	run, err := r.InBackground(rq, turn, func(dst []byte) []byte { return r.out.Begin(dst, expectedInstance(rq)) }, r.generate)
	switch {
	case err != nil:
		return text.NotBegun(c, err)
	case follows:
		return follow(c, run)
	}
	return c.Answer(DescribeResponse(&begun))
}

const discardTimeout = 30 * time.Second // bounds how long a cancelled answer waits for its question to be deleted

func follow(c *endpoint.Call, run *runs.Run) error {
	_, err := text.Follow(c, run, 0, nil)
	if errors.Is(err, runs.ErrTrimmed) && !c.Begun {
		return noStream()
	}
	return err
}

// noStream is the error of a stream whose events aren't kept, or not on this server.
func noStream() *translate.Error {
	return translate.Invalid("stream_unavailable", "stream", "The events of this response aren't kept: they are for 10 minutes after "+
		`its end, if it was created with "background": true and hasn't too many. Leave out "stream" to get the response.`)
}

// cancelResponse is POST /api/v1/responses/{id}/cancel, for responses in the background. It returns when the response has ended.
func cancelResponse(c *endpoint.Call) error {
	turn, err := ownTurn(c, c.Param)
	if err != nil {
		return err
	}
	if run := c.Node.Runs.Get(turn.Owner, turn.ID); run != nil {
		if err := run.CancelAndWait(c.Request.Context()); err != nil {
			return err
		}
	}
	return answerTurn(c, turn.ID)
}

type approvedCall struct {
	CallID   string `json:"call_id"`
	Approved bool   `json:"approved"`
}

// approveCall is POST /api/v1/responses/{id}/approve: it decides about a call that waits for its approval.
func approveCall(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	fields := body.Fields()
	id, isApproved := fields.Text("call_id"), fields.MaybeBool("approved")
	switch {
	case fields.Err != nil:
		return fields.Err
	case isApproved == nil:
		return translate.Missing("approved")
	}
	if run := c.Node.Runs.Get(c.Owner(), c.Param); run == nil || !run.Decide(id, *isApproved) {
		return translate.Invalid("call_not_waiting", "call_id", "No call with this id waits for approval in this response: it has been decided about, or the response has ended.")
	}
	return c.Answer(approvedCall{id, *isApproved})
}
