package client

import (
	"context"
	"net/url"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// Models returns the models, and those that can't be used.
func (c *Client) Models(ctx context.Context) (resource.Models, error) {
	var m resource.Models
	err := c.Get(ctx, "/api/v1/models", &m)
	return m, err
}

// Unload unloads an instance.
func (c *Client) Unload(ctx context.Context, id string) error {
	return c.Post(ctx, "/api/v1/models/unload", map[string]string{"instance_id": id}, nil)
}

// Remove deletes a model's files.
func (c *Client) Remove(ctx context.Context, key string) error {
	return c.Delete(ctx, "/api/v1/models/"+url.PathEscape(key), nil)
}
