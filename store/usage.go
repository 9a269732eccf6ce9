package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// UsageKey is whose use of which model on which day.
type UsageKey struct {
	Day   int    // since 1970, in UTC
	Owner string // empty: nobody in particular
	Model string // its key
}

// UsageCount is how much was used.
type UsageCount struct {
	Requests  int64
	TokensIn  int64
	TokensOut int64
}

// Day is the number of a moment's day, for a [UsageKey].
func Day(t time.Time) int { return int(t.Unix() / (24 * 60 * 60)) }

const (
	addUsage = `INSERT INTO token_usage (day, owner, model, requests, tokens_in, tokens_out) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (day, owner, model) DO UPDATE SET requests = token_usage.requests + excluded.requests,
			tokens_in = token_usage.tokens_in + excluded.tokens_in, tokens_out = token_usage.tokens_out + excluded.tokens_out`

	selectUsage = `SELECT day, owner, model, requests, tokens_in, tokens_out FROM token_usage
		WHERE day BETWEEN $1 AND $2 ORDER BY day, owner, model`

	selectOwnUsage = `SELECT day, owner, model, requests, tokens_in, tokens_out FROM token_usage
		WHERE day BETWEEN $1 AND $2 AND owner = $3 ORDER BY day, owner, model`
)

// AddUsage adds to what was used. After an error it may have been added.
func (s *Store) AddUsage(ctx context.Context, used map[UsageKey]UsageCount) error {
	keys := slices.SortedFunc(maps.Keys(used), func(a, b UsageKey) int { // in one order, or two writers might wait for each other
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Model, b.Model))
	})
	return s.write(ctx, 0, func(t *tx) error {
		if t.again {
			return nil // it may have been added; twice would be worse
		}
		for _, k := range keys {
			n := used[k]
			if _, err := t.exec(addUsage, k.Day, k.Owner, k.Model, n.Requests, n.TokensIn, n.TokensOut); err != nil {
				return err
			}
		}
		return nil
	})
}

// Usage gives what was used from one day to another, both included, by all owners.
func (s *Store) Usage(ctx context.Context, from, to int) (map[UsageKey]UsageCount, error) {
	return s.usage(ctx, selectUsage, from, to)
}

// UsageOf is Usage by one owner.
func (s *Store) UsageOf(ctx context.Context, owner string, from, to int) (map[UsageKey]UsageCount, error) {
	return s.usage(ctx, selectOwnUsage, from, to, owner)
}

func (s *Store) usage(ctx context.Context, query string, args ...any) (map[UsageKey]UsageCount, error) {
	var used map[UsageKey]UsageCount
	err := s.read(ctx, func(q querier) error {
		used = map[UsageKey]UsageCount{}
		return each(ctx, q, query, args, func(scan func(...any) error) error {
			var k UsageKey
			var n UsageCount
			err := scan(&k.Day, &k.Owner, &k.Model, &n.Requests, &n.TokensIn, &n.TokensOut)
			used[k] = n
			return err
		})
	})
	return used, err
}
