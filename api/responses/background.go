package responses

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// inBackground begins a response that is made whether or not the client waits for it, and answers with what there is of it: the queued
// response, or the stream.
func (r *run) inBackground(c *endpoint.Call, rq *text.Request) error {
	follows := rq.Streams
	rq.Streams = true // to the log
	turn := r.turn(store.InProgress, c.Owner())
	begun := *turn
	d := c.Detach()
	run, err := c.Node.Runs.Start(c.Request.Context(), turn, func(ctx context.Context, run *runs.Run) {
		defer d.End()
		defer d.Client.Close()
		d.Attach(ctx, run)
		r.detached(d, rq)
	})
	if err != nil {
		c.TakeBack(d)
		return r.notStarted(c, err)
	}
	if follows {
		return followRun(c, run, 0)
	}
	c.WriteJSON(http.StatusOK, appendStored(c, &begun))
	return nil
}

func (r *run) notStarted(c *endpoint.Call, err error) error {
	_, isLimit := errors.AsType[*access.LimitError](err)
	_, isDeleted := errors.AsType[*store.NotFound](err)
	switch {
	case isLimit, errors.Is(err, runs.ErrShutDown):
		return err
	case isDeleted: // in the meantime
		return noPrevious(c, r.ask.Previous, err)
	default:
		return text.NotStored(c, err)
	}
}

// detached makes the response. However it ends, the log and the store say so.
func (r *run) detached(c *endpoint.Call, rq *text.Request) {
	rq.Call = c
	r.Loop = &text.Loop{Run: text.NewRun(rq), Writer: r, Fields: fieldNames}
	defer r.Close()
	var err error
	func() {
		defer func() {
			if fault := recover(); fault != nil {
				err = c.Panicked(fault)
			}
		}()
		r.Send(func(dst []byte) []byte { return r.out.Begin(dst, true) })
		err = r.Respond(r.generate)
	}()
	if err != nil {
		r.End(err)
	}
}

// resume is GET /v1/responses/{id}?stream=true&starting_after=N: the stream of a background response from its beginning, or after the
// event with a number.
func resume(c *endpoint.Call, turn *store.Turn) error {
	from := 0
	if given := c.Request.URL.Query().Get("starting_after"); given != "" {
		after, err := strconv.Atoi(given)
		if err != nil || after < 0 {
			return translate.Invalid("invalid_value", "starting_after", `"starting_after" must be the sequence_number of an event.`)
		}
		from = after + 1
	}
	if !text.IsBackground(turn) {
		return translate.Invalid("invalid_value", "stream", `Only responses that were created with "background": true can be streamed again. Leave out "stream" to get the response.`)
	}
	run := c.Node.Runs.Get(turn.Owner, turn.ID)
	if run == nil {
		return noLog()
	}
	return followRun(c, run, from)
}

// noLog is the error of a stream whose events aren't kept any more, or not on this server.
func noLog() *translate.Error {
	return translate.Invalid("stream_unavailable", "stream",
		`The events of this response are no longer kept: they are for 10 minutes after its end, as long as they aren't too many. Leave out "stream" to get the response.`)
}

// followRun streams the log of a run, from an event on. That the client disconnects, or reads slowly, is nothing to the run.
func followRun(c *endpoint.Call, run *runs.Run, from int) error {
	stream := c.NewStream()
	defer stream.Close()
	stream.Await()
	buf := endpoint.Buffers.Get().(*[]byte)
	defer c.Client.PutBuffer(buf)
	ctx := c.Request.Context()
	for isFirst := true; ; isFirst = false {
		frames, next, err := run.Follow(ctx, (*buf)[:0], from)
		*buf = frames[:cap(frames)]
		switch {
		case errors.Is(err, io.EOF):
			if isFirst { // the client has every event already
				stream.Send(jsonbody.AppendFrame(nil, jsonbody.DoneMark))
			}
			return nil
		case err != nil:
			stream.Close() // from here on nobody else writes
			return breakOff(c, run, from, err)
		}
		stream.Send(frames)
		from = next
	}
}

// breakOff ends a stream that can't be followed any further. next is the number of its next event.
func breakOff(c *endpoint.Call, run *runs.Run, next int, err error) error {
	ended := access.Ended(c.Request.Context())
	switch {
	case ended != nil:
		err = ended
	case c.Request.Context().Err() != nil:
		return err // the client has disconnected
	case !errors.Is(err, runs.ErrTrimmed):
	case c.Begun && c.Node.Runs.Get(run.Owner, run.ID) == nil:
		err = &translate.Error{Kind: translate.KindResponseNotFound, Message: "Response with id '" + run.ID + "' has been deleted, or its events are no longer kept."}
	default:
		err = noLog()
	}
	if !c.Begun {
		return err
	}
	c.Stream.Send(responses.AppendBrokenOff(nil, next, c.Error(err)))
	return nil
}

// turn is what is stored of the response at its beginning and at its end.
func (r *run) turn(status store.Status, owner string) *store.Turn {
	a := &r.out.Answer
	return &store.Turn{
		ID: a.ID, Parent: r.parent, Owner: owner, Model: a.Model, Status: status, Dialect: resource.DialectResponses,
		In: translate.Settled(responses.WithIDs(a.ID, r.ask.Input)), Out: a.Items(), Request: a.Echo(), Usage: a.Usage(), Created: a.Created,
	}
}
