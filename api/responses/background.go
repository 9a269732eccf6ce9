package responses

import (
	"errors"
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

// inBackground begins a response that no client has to wait for, and answers with the queued response, or the stream.
func (r *run) inBackground(c *endpoint.Call, rq *text.Request) error {
	follows := rq.Streams
	turn := r.turn(store.InProgress, c.Owner())
	begun := *turn
	r.Loop = &text.Loop{Writer: r, Output: &r.out, Fields: fieldNames}
	run, err := r.InBackground(rq, turn, func(dst []byte) []byte { return r.out.Begin(dst, true) }, r.generate)
	switch _, isDeleted := errors.AsType[*store.NotFound](err); {
	case isDeleted: // in the meantime
		return noPrevious(c, r.ask.Previous, err)
	case err != nil:
		return text.NotBegun(c, err)
	case follows:
		return followRun(c, run, 0)
	}
	c.WriteJSON(http.StatusOK, appendStored(c, &begun))
	return nil
}

// resume is GET /v1/responses/{id}?stream=true&starting_after=N: a background response's stream from the beginning, or after an event.
func resume(c *endpoint.Call, turn *store.Turn) error {
	from := 0
	if given := c.Request.URL.Query().Get("starting_after"); given != "" {
		after, err := strconv.Atoi(given)
		if err != nil || after < 0 {
			return translate.BadValue("starting_after", "must be the sequence_number of an event.")
		}
		from = after + 1
	}
	if !text.IsBackground(turn) {
		return translate.Invalid("invalid_value", "stream",
			`Only responses that were created with "background": true can be streamed again. Leave out "stream" to get the response.`)
	}
	run := c.Node.Runs.Get(turn.Owner, turn.ID)
	if run == nil {
		return noLog()
	}
	return followRun(c, run, from)
}

// noLog is the error of a stream whose events aren't kept any more, or not on this server.
func noLog() *translate.Error {
	return translate.Invalid("stream_unavailable", "stream", "The events of this response are no longer kept: they are for 10 minutes "+
		`after its end, as long as they aren't too many. Leave out "stream" to get the response.`)
}

// followRun streams the log of a run, from an event on. If it can't be followed any further, the stream says why.
func followRun(c *endpoint.Call, run *runs.Run, from int) error {
	next, err := text.Follow(c, run, from, jsonbody.AppendFrame(nil, jsonbody.DoneMark))
	ended := access.Ended(c.Request.Context())
	switch {
	case err == nil:
		return nil
	case ended != nil:
		err = ended
	case c.Request.Context().Err() != nil:
		return err // the client has disconnected
	case !errors.Is(err, runs.ErrTrimmed):
	case c.Begun && c.Node.Runs.Get(run.Owner, run.ID) == nil:
		message := "Response with id '" + run.ID + "' has been deleted, or its events are no longer kept."
		err = &translate.Error{Kind: translate.KindResponseNotFound, Message: message}
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
		ID: a.ID, Parent: r.parent, Owner: owner, Model: a.Model, Status: status, Dialect: resource.DialectResponses, Created: a.Created,
		In: translate.Settled(responses.WithIDs(a.ID, r.ask.Input)), Out: a.Items(), Request: a.Echo(), Usage: a.Usage(),
	}
}
