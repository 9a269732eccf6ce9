package client

import (
	"context"
	"net/url"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

const warm = "/api/v1/warm"

// Warm returns the saved states of conversations.
func (c *Client) Warm(ctx context.Context) (resource.Warm, error) {
	return get[resource.Warm](ctx, c, warm)
}

// ClearWarm deletes the saved states of a model, or all of them if the name is empty.
func (c *Client) ClearWarm(ctx context.Context, model string) (resource.WarmCleared, error) {
	path := warm
	if model != "" {
		path += "?model=" + url.QueryEscape(model)
	}
	var cleared resource.WarmCleared
	err := c.Delete(ctx, path, &cleared)
	return cleared, err
}
