package api

import (
	"encoding/json"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

type (
	// storedResponse is a turn of a conversation, as GET /api/v1/responses/{id} returns it.
	storedResponse struct {
		ID       string            `json:"response_id"`
		Previous string            `json:"previous_response_id,omitempty"`
		Model    string            `json:"model"`
		Status   store.Status      `json:"status"`
		Created  time.Time         `json:"created_at"`
		System   *string           `json:"system_prompt,omitempty"`
		Input    []json.RawMessage `json:"input"`
		Output   []json.RawMessage `json:"output"`
		Usage    storedUsage       `json:"usage"`
	}
	storedUsage struct {
		Input     int `json:"input_tokens"`
		Cached    int `json:"cached_input_tokens"` // of Input, those that the engine had cached
		Output    int `json:"output_tokens"`
		Reasoning int `json:"reasoning_output_tokens"`
	}
	deletedResponse struct {
		ID      string `json:"response_id"`
		Deleted bool   `json:"deleted"`
	}
)

// getResponse is GET /api/v1/responses/{id}.
func (c *call) getResponse() error {
	turn, err := c.nativeTurn(c.param)
	if err != nil {
		return err
	}
	system, input := native.Input(turn.In)
	return c.answer(storedResponse{
		ID: turn.ID, Previous: turn.Parent, Model: turn.Model, Status: turn.Status, Created: turn.Created.UTC().Truncate(time.Millisecond),
		System: system, Input: input, Output: native.Output(turn.Out),
		Usage: storedUsage{turn.Usage.Prompt, turn.Usage.Cached, turn.Usage.Completion, turn.Usage.Reasoning},
	})
}

// deleteResponse is DELETE /api/v1/responses/{id}. Responses that continue it stay.
func (c *call) deleteResponse() error {
	turn, err := c.nativeTurn(c.param)
	if err == nil {
		err = c.node.Conversations().Delete(c.r.Context(), c.owner(), turn.ID)
	}
	if err != nil {
		return err
	}
	return c.answer(deletedResponse{turn.ID, true})
}

// nativeTurn returns a turn of the native API. One of the Responses API is unknown here.
func (c *call) nativeTurn(id string) (*store.Turn, error) {
	turn, err := c.node.Conversations().Get(c.r.Context(), c.owner(), id)
	if err == nil && responses.IsEcho(turn.Request) {
		err = &store.NotFound{ID: id}
	}
	return turn, err
}
