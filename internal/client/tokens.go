package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

const tokens = "/api/v1/tokens" //nolint:gosec // not a credential

// TokenEdit describes a new token, or a change of one. Nil fields stay unchanged.
type TokenEdit struct {
	Name    *string        `json:"name,omitempty"`
	Scopes  *[]string      `json:"scopes,omitempty"`
	Models  *[]string      `json:"models,omitempty"`
	Expires **time.Time    `json:"expires_at,omitempty"` // pointer to nil: never
	Limits  map[string]int `json:"limits,omitempty"`     // by the JSON names of [resource.TokenLimits]; 0: no limit
}

// Tokens returns the tokens, oldest first.
func (c *Client) Tokens(ctx context.Context) ([]resource.Token, error) {
	var list struct {
		Tokens []resource.Token `json:"tokens"`
	}
	err := c.Get(ctx, tokens, &list)
	return list.Tokens, err
}

// CreateToken creates a token.
func (c *Client) CreateToken(ctx context.Context, e TokenEdit) (resource.Token, error) {
	return send[resource.Token](ctx, c, http.MethodPost, tokens, e)
}

// EditToken changes a token.
func (c *Client) EditToken(ctx context.Context, id string, e TokenEdit) (resource.Token, error) {
	return send[resource.Token](ctx, c, http.MethodPatch, tokens+"/"+url.PathEscape(id), e)
}

// RevokeToken revokes a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.ask(ctx, http.MethodDelete, tokens+"/"+url.PathEscape(id), nil, nil)
}
