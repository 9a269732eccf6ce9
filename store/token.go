package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Token is an access token without its secret.
type Token struct {
	ID       string // public part of the token
	Hash     string // SHA-256 of the whole token, in hex
	Name     string // chosen by people
	Rights   json.RawMessage
	Created  time.Time
	Expires  time.Time // zero: never
	LastUsed time.Time // zero: never
}

// tokens are the access tokens of a [Store].
type tokens struct{ *connection }

//nolint:gosec // queries, not credentials
const (
	insertToken = `INSERT INTO tokens (id, hash, name, rights, created, expires, last_used) VALUES ($1, $2, $3, $4, $5, $6, 0)
		ON CONFLICT (id) DO NOTHING`

	selectToken = `SELECT id, hash, name, rights, created, expires, last_used FROM tokens WHERE id = $1`
	// selectSomeTokens is followed by a list of IDs.
	selectSomeTokens = `SELECT id, hash, name, rights, created, expires, last_used FROM tokens WHERE id IN `

	selectTokens = `SELECT id, hash, name, rights, created, expires, last_used FROM tokens ORDER BY created, id`

	updateToken = `UPDATE tokens SET name = $2, rights = $3, expires = $4 WHERE id = $1`
	deleteToken = `DELETE FROM tokens WHERE id = $1`
	touchToken  = `UPDATE tokens SET last_used = $2 WHERE id = $1 AND last_used < $2`
)

// PutToken stores a new token. The error is *[Exists] if the ID is taken.
func (s tokens) PutToken(ctx context.Context, t Token) error {
	if !possible(t.ID) || !possible(t.Hash) || t.Name != "" && !possible(t.Name) {
		return &Invalid{ID: t.ID, Reason: "its id, hash and name must be UTF-8 without zero bytes"}
	}
	return s.write(ctx, 0, func(tx *tx) error {
		n, err := tx.exec(insertToken, t.ID, t.Hash, t.Name, string(t.Rights), t.Created.UnixNano(), nanoseconds(t.Expires))
		if err == nil && n == 0 && !tx.again {
			return &Exists{ID: t.ID}
		}
		return err
	})
}

// Token returns the token with an ID. The error is *[NotFound] if there is none.
func (s tokens) Token(ctx context.Context, id string) (Token, error) {
	if !possible(id) {
		return Token{}, &NotFound{ID: id}
	}
	tokens, err := s.list(ctx, selectToken, id)
	if err == nil && len(tokens) == 0 {
		return Token{}, &NotFound{ID: id}
	}
	if err != nil {
		return Token{}, err
	}
	return tokens[0], nil
}

// Tokens returns all tokens, oldest first.
func (s tokens) Tokens(ctx context.Context) ([]Token, error) { return s.list(ctx, selectTokens) }

func (s tokens) list(ctx context.Context, query string, args ...any) ([]Token, error) {
	return list(ctx, s.connection, query, args, func(t *Token, scan func(...any) error) error {
		var rights string
		var created, expires, used int64
		err := scan(&t.ID, &t.Hash, &t.Name, &rights, &created, &expires, &used)
		t.Rights, t.Created, t.Expires, t.LastUsed = json.RawMessage(rights), timeOf(created), timeOf(expires), timeOf(used)
		return err
	})
}

// TokensByID returns the tokens that exist among the IDs, in any order.
func (s tokens) TokensByID(ctx context.Context, ids []string) ([]Token, error) {
	var all []Token
	err := inLists(ids, func(list string, args []any) error {
		found, err := s.list(ctx, selectSomeTokens+list, args...)
		all = append(all, found...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// UpdateToken changes a token's name, rights and expiry. The error is *[NotFound] if there is none.
func (s tokens) UpdateToken(ctx context.Context, t Token) error {
	if !possible(t.ID) {
		return &NotFound{ID: t.ID}
	}
	if t.Name != "" && !possible(t.Name) {
		return &Invalid{ID: t.ID, Reason: "its name must be UTF-8 without zero bytes"}
	}
	return s.changeToken(ctx, t.ID, updateToken, t.ID, t.Name, string(t.Rights), nanoseconds(t.Expires))
}

// DeleteToken deletes a token. The error is *[NotFound] if there is none.
func (s tokens) DeleteToken(ctx context.Context, id string) error {
	if !possible(id) {
		return &NotFound{ID: id}
	}
	return s.changeToken(ctx, id, deleteToken, id)
}

func (s tokens) changeToken(ctx context.Context, id, query string, args ...any) error {
	return s.write(ctx, 0, func(tx *tx) error {
		n, err := tx.exec(query, args...)
		if err == nil && n == 0 && !tx.again {
			return &NotFound{ID: id}
		}
		return err
	})
}

// TouchTokens records when tokens were last used, by ID.
func (s tokens) TouchTokens(ctx context.Context, used map[string]time.Time) error {
	return s.write(ctx, 0, func(tx *tx) error {
		for _, id := range slices.Sorted(maps.Keys(used)) {
			if _, err := tx.exec(touchToken, id, used[id].UnixNano()); err != nil {
				return err
			}
		}
		return nil
	})
}

// mostListed is the most IDs in one query.
const mostListed = 500

// inLists calls do with lists of IDs for queries: a list's text, and its arguments. IDs that nothing can have are left out.
func inLists(ids []string, do func(list string, args []any) error) error {
	for some := range slices.Chunk(ids, mostListed) {
		var list strings.Builder
		args := make([]any, 0, len(some))
		for _, id := range some {
			if !possible(id) {
				continue
			}
			if len(args) > 0 {
				list.WriteString(", ")
			}
			args = append(args, id)
			fmt.Fprintf(&list, "$%d", len(args))
		}
		if len(args) == 0 {
			continue
		}
		if err := do("("+list.String()+")", args); err != nil {
			return err
		}
	}
	return nil
}
