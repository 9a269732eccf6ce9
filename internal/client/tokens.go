package client

import (
	"context"
	"net/url"
	"time"
)

const tokens = "/api/v1/tokens" //nolint:gosec // not a credential

// Token is an access token of a server.
type Token struct {
	Secret   string      `json:"token,omitempty"` // set only when the token is created
	ID       string      `json:"id"`
	Name     string      `json:"name"`
	Scopes   []string    `json:"scopes"`
	Models   []string    `json:"models"` // empty: all
	Limits   TokenLimits `json:"limits"`
	Created  *time.Time  `json:"created_at"`
	Expires  *time.Time  `json:"expires_at"`   // nil: never
	LastUsed *time.Time  `json:"last_used_at"` // nil: never
}

// TokenLimits limits the use of a token. A zero field is no limit.
type TokenLimits struct {
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	TokensPerDay      int `json:"tokens_per_day,omitempty"`
	Concurrent        int `json:"concurrent_requests,omitempty"`
}

// TokenEdit describes a new token, or a change of one. Nil fields stay unchanged.
type TokenEdit struct {
	Name    *string        `json:"name,omitempty"`
	Scopes  *[]string      `json:"scopes,omitempty"`
	Models  *[]string      `json:"models,omitempty"`
	Expires **time.Time    `json:"expires_at,omitempty"` // pointer to nil: never
	Limits  map[string]int `json:"limits,omitempty"`     // by the JSON names of [TokenLimits]; 0: no limit
}

// Tokens returns the tokens, oldest first.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	var list struct {
		Tokens []Token `json:"tokens"`
	}
	err := c.Get(ctx, tokens, &list)
	return list.Tokens, err
}

// CreateToken creates a token.
func (c *Client) CreateToken(ctx context.Context, e TokenEdit) (Token, error) {
	var t Token
	err := c.Post(ctx, tokens, e, &t)
	return t, err
}

// EditToken changes a token.
func (c *Client) EditToken(ctx context.Context, id string, e TokenEdit) (Token, error) {
	var t Token
	err := c.Patch(ctx, tokens+"/"+url.PathEscape(id), e, &t)
	return t, err
}

// RevokeToken revokes a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.Delete(ctx, tokens+"/"+url.PathEscape(id), nil)
}
