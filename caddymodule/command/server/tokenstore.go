package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
)

// tokens is where tokens are stored: a server, or the home's database while no server runs.
type tokens interface {
	Tokens(context.Context) ([]resource.Token, error)
	CreateToken(context.Context, client.TokenEdit) (resource.Token, error)
	EditToken(context.Context, string, client.TokenEdit) (resource.Token, error)
	RevokeToken(context.Context, string) error
}

// showTokens calls ask with the tokens of the server, or with those in the home's database if no server runs, and prints the answer: as
// JSON, or as write shows it to people.
func showTokens[T any](cmd *cobra.Command, to *kit.Connection, asJSON bool, ask func(context.Context, tokens) (T, error),
	write func(io.Writer, T) error,
) error {
	var answer T
	do := func(ctx context.Context, t tokens) (err error) {
		answer, err = ask(ctx, t)
		return err
	}
	err := to.TalkOrAtHome(cmd, func(ctx context.Context, c *client.Client) error { return do(ctx, c) },
		func(ctx context.Context, dir home.Dir) error {
			if usesPostgres(caddy.ConfigAutosavePath) {
				return fmt.Errorf("no lmcaddy is running on %s, and its configuration keeps the tokens in PostgreSQL: "+
					"start the server, and run this command again", dir)
			}
			return node.WithStoreOf(ctx, dir, func(s *store.Store) error {
				terminal.Printf(cmd.ErrOrStderr(), "No lmcaddy is running on %s: these are the tokens in %s.\n", dir, dir.Database())
				return do(ctx, atHome{s})
			})
		})
	switch {
	case err != nil:
		return err
	case asJSON:
		return kit.WriteJSON(cmd.OutOrStdout(), answer)
	}
	return write(cmd.OutOrStdout(), answer)
}

// usesPostgres reports whether the last configuration that ran, which Caddy has saved in a file, stores tokens in PostgreSQL.
func usesPostgres(saved string) bool {
	content, err := os.ReadFile(saved)
	if err != nil {
		return false
	}
	var config struct {
		Apps struct {
			LM struct {
				Store config.Store `json:"store"`
			} `json:"lm"`
		} `json:"apps"`
	}
	return json.Unmarshal(content, &config) == nil && config.Apps.LM.Store.PostgresURL != ""
}

// atHome has the tokens in the home's database.
type atHome struct{ store *store.Store }

func (h atHome) tokens() *access.Tokens {
	return access.New(access.Options{Store: func() *store.Store { return h.store }}).Tokens
}

func (h atHome) Tokens(ctx context.Context) ([]resource.Token, error) {
	tokens, err := h.tokens().List(ctx)
	all := make([]resource.Token, len(tokens))
	for i := range tokens {
		all[i] = manage.DescribeToken(&tokens[i])
	}
	return all, err
}

func (h atHome) CreateToken(ctx context.Context, e client.TokenEdit) (resource.Token, error) {
	t := access.Token{Scopes: access.DefaultScopes}
	changeToken(&t, e)
	secret, t, err := h.tokens().Create(ctx, t)
	if err != nil {
		return resource.Token{}, err
	}
	made := manage.DescribeToken(&t)
	made.Secret = secret
	return made, nil
}

func (h atHome) EditToken(ctx context.Context, id string, e client.TokenEdit) (resource.Token, error) {
	t, err := h.tokens().Get(ctx, id)
	if err == nil {
		changeToken(&t, e)
		t, err = h.tokens().Update(ctx, t)
	}
	return manage.DescribeToken(&t), unknownToken(id, err)
}

func (h atHome) RevokeToken(ctx context.Context, id string) error {
	return unknownToken(id, h.store.DeleteToken(ctx, id))
}

func unknownToken(id string, err error) error {
	if _, ok := errors.AsType[*store.NotFound](err); ok {
		return fmt.Errorf(`there is no token with the id %q: "lmcaddy token ls" lists them`, id)
	}
	return err
}

func changeToken(t *access.Token, e client.TokenEdit) {
	if e.Name != nil {
		t.Name = *e.Name
	}
	if e.Scopes != nil {
		t.Scopes = nil
		for _, s := range *e.Scopes {
			t.Scopes = append(t.Scopes, access.Scope(s))
		}
	}
	if e.Models != nil {
		t.Models = *e.Models
	}
	if e.Expires != nil {
		t.Expires = time.Time{}
		if at := *e.Expires; at != nil {
			t.Expires = *at
		}
	}
	for name, to := range map[string]*int{
		"requests_per_minute": &t.Limits.RequestsPerMinute, "tokens_per_day": &t.Limits.TokensPerDay,
		"concurrent_requests": &t.Limits.Concurrent,
	} {
		if n, given := e.Limits[name]; given {
			*to = n
		}
	}
}
