package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// Load loads a model, and calls each with the progress of the load, 0 to 1, once it has begun. It returns the response's JSON,
// which is a [resource.Loaded]. A server that doesn't tell of the progress will do.
func (c *Client) Load(ctx context.Context, request any, each func(progress float64)) (json.RawMessage, error) {
	resp, err := c.request(ctx, http.MethodPost, "/api/v1/models/load", eventStream, request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var result json.RawMessage
	if !isEventStream(resp) {
		err := decode(resp, c.Address(), &result)
		return result, err
	}
	err = follow(ctx, resp, decoded(func(event struct {
		Type     string          `json:"type"`
		Progress float64         `json:"progress"`
		Result   json.RawMessage `json:"result"`
		Error    Fault           `json:"error"`
	},
	) error {
		switch event.Type {
		case "error":
			return event.Error.Err()
		case "model_load.end":
			result = event.Result
			return ErrStop
		}
		each(event.Progress)
		return nil
	}))
	if err == nil && result == nil {
		err = ErrCut
	}
	return result, err
}
