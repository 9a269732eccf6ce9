package responses

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

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

// defaultItems and maxItems are how many items of an input are listed at a time.
const defaultItems, maxItems = 20, 100

type (
	deletedResponse struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}
	inputItems struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
		First  string            `json:"first_id"`
		Last   string            `json:"last_id"`
		More   bool              `json:"has_more"`
	}
)

// storedTurn returns a turn of the Responses API. A turn of the native API is unknown here.
func storedTurn(c *endpoint.Call, id string) (*store.Turn, error) {
	turn, err := c.Node.Stores.Get().Get(c.Request.Context(), c.Owner(), id)
	if _, isMissing := errors.AsType[*store.NotFound](err); isMissing || err == nil && !responses.IsEcho(turn.Request) {
		return nil, &translate.Error{Kind: translate.KindResponseNotFound, Message: "Response with id '" + id + "' not found."}
	}
	if err != nil {
		return nil, err
	}
	return text.Refreshed(c, turn)
}

// getStored is GET /v1/responses/{id}; with ?stream=true or starting_after, the rest of the stream of a background response.
func getStored(c *endpoint.Call) error {
	turn, err := storedTurn(c, c.Param)
	if err != nil {
		return err
	}
	query := c.Request.URL.Query()
	isStream := query.Has("starting_after")
	if query.Has("stream") {
		if isStream, err = endpoint.QueryBool(c, "stream"); err != nil {
			return err
		}
	}
	if isStream && c.Request.Method != http.MethodHead {
		return resume(c, turn)
	}
	c.WriteJSON(http.StatusOK, appendStored(c, turn))
	return nil
}

func appendStored(c *endpoint.Call, turn *store.Turn) []byte {
	status := responses.Status(turn.Status)
	if turn.Status == store.InProgress {
		if run := c.Node.Runs.Get(turn.Owner, turn.ID); run != nil && !run.IsWorking() {
			status = responses.Queued
		}
	}
	return responses.AppendStored(nil, responses.Stored{
		ID: turn.ID, Previous: turn.Parent, Model: turn.Model, Created: turn.Created, Status: status,
		Echo: turn.Request, Out: turn.Out, Usage: turn.Usage,
	})
}

// deleteStored is DELETE /v1/responses/{id}. Responses that continue it stay. One that is being made ends.
func deleteStored(c *endpoint.Call) error {
	turn, err := storedTurn(c, c.Param)
	if err == nil {
		err = c.Node.Stores.DeleteTurn(c.Request.Context(), turn)
	}
	if err != nil {
		return err
	}
	if run := c.Node.Runs.Get(turn.Owner, turn.ID); run != nil {
		run.Forget()
	}
	return c.Answer(deletedResponse{turn.ID, "response", true})
}

// listInput is GET /v1/responses/{id}/input_items.
func listInput(c *endpoint.Call) error {
	turn, err := storedTurn(c, c.Param)
	if err != nil {
		return err
	}
	query := c.Request.URL.Query()
	limit := defaultItems
	if given := query.Get("limit"); given != "" {
		if limit, err = strconv.Atoi(given); err != nil || limit < 1 || limit > maxItems {
			return translate.BadValue("limit", "must be a number from 1 to 100.")
		}
	}
	items := responses.InputItems(turn.ID, turn.In)
	switch query.Get("order") {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return translate.BadValue("order", `must be "asc" or "desc".`)
	}
	if after := query.Get("after"); after != "" {
		at := slices.IndexFunc(items, func(item json.RawMessage) bool { return itemID(item) == after })
		if at < 0 {
			return translate.Invalid("invalid_value", "after", "The response's input has no item with the id "+endpoint.Quoted(after)+".")
		}
		items = items[at+1:]
	}
	list := inputItems{Object: "list", Data: items[:min(limit, len(items))], More: len(items) > limit}
	if len(list.Data) > 0 {
		list.First, list.Last = itemID(list.Data[0]), itemID(list.Data[len(list.Data)-1])
	}
	return c.Answer(list)
}

func itemID(item json.RawMessage) string { return gjson.GetBytes(item, "id").Str }

// cancelStored is POST /v1/responses/{id}/cancel, for responses in the background. One that has ended stays as it is.
func cancelStored(c *endpoint.Call) error {
	turn, err := storedTurn(c, c.Param)
	if err != nil {
		return err
	}
	if !text.IsBackground(turn) {
		return translate.Invalid("", "", "Cannot cancel a synchronous response.")
	}
	if turn.Status == store.InProgress {
		if run := c.Node.Runs.Get(turn.Owner, turn.ID); run != nil {
			err = run.CancelAndWait(c.Request.Context())
		} else { // another server makes it, and will find out
			turn.Status = store.Cancelled
			err = c.Node.Stores.Get().Finish(c.Request.Context(), turn)
		}
		if _, hasEnded := errors.AsType[*store.Exists](err); err == nil || hasEnded {
			turn, err = storedTurn(c, turn.ID)
		}
		if err != nil {
			return err
		}
	}
	c.WriteJSON(http.StatusOK, appendStored(c, turn))
	return nil
}

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
