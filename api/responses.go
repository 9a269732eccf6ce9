package api

import (
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

type deletedResponse struct {
	ID      string `json:"response_id"`
	Deleted bool   `json:"deleted"`
}

// getResponse is GET /api/v1/responses/{id}.
func (c *call) getResponse() error {
	turn, err := c.nativeTurn(c.param)
	if err != nil {
		return err
	}
	return c.answer(describeResponse(turn))
}

// describeResponse returns what the native API says of a turn.
func describeResponse(turn *store.Turn) resource.Response {
	system, input := native.Input(turn.In)
	return resource.Response{
		ID: turn.ID, Previous: turn.Parent, Model: turn.Model, Status: string(turn.Status), Created: turn.Created.UTC().Truncate(time.Millisecond),
		System: system, Input: input, Output: native.Output(turn.Out),
		Usage: resource.ResponseUsage{Input: turn.Usage.Prompt, Cached: turn.Usage.Cached, Output: turn.Usage.Completion, Reasoning: turn.Usage.Reasoning},
	}
}

// deleteResponse is DELETE /api/v1/responses/{id}. Responses that continue it stay.
func (c *call) deleteResponse() error {
	turn, err := c.nativeTurn(c.param)
	if err == nil {
		err = c.node.DeleteTurn(c.r.Context(), turn)
	}
	if err != nil {
		return err
	}
	return c.answer(deletedResponse{turn.ID, true})
}

// nativeTurn returns a turn of the native API. One of the Responses API is unknown here, and so is one that is in progress.
func (c *call) nativeTurn(id string) (*store.Turn, error) {
	turn, err := c.node.Conversations().Get(c.r.Context(), c.owner(), id)
	if err == nil {
		turn, err = c.looked(turn)
	}
	if err == nil && (responses.IsEcho(turn.Request) || turn.Status == store.InProgress) {
		err = &store.NotFound{ID: id}
	}
	return turn, err
}
