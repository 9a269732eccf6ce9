package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// UsageKey identifies the use of a model by an owner on a day.
type UsageKey struct {
	Day   int    // since 1970, in UTC
	Owner string // may be empty
	Model string // key of the model
}

// UsageCount is an amount of usage.
type UsageCount struct {
	Requests  int64
	TokensIn  int64
	TokensOut int64
}

type usages struct{ *connection }

// Day returns the number of the day for a [UsageKey].
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

// AddUsage adds to the stored usage. After an error it may have been added.
func (s usages) AddUsage(ctx context.Context, used map[HourKey]UsageCount) error {
	days := map[UsageKey]UsageCount{}
	for k, n := range used {
		day := UsageKey{Day: k.Hour / 24, Owner: k.Owner, Model: k.Model}
		d := days[day]
		days[day] = UsageCount{d.Requests + n.Requests, d.TokensIn + n.TokensIn, d.TokensOut + n.TokensOut}
	}
	// in the same order everywhere, or two writers might deadlock
	inDays := slices.SortedFunc(maps.Keys(days), func(a, b UsageKey) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Model, b.Model))
	})
	inHours := slices.SortedFunc(maps.Keys(used), func(a, b HourKey) int {
		return cmp.Or(cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Model, b.Model))
	})
	return s.write(ctx, 0, func(t *tx) error {
		if t.again {
			return nil // counting it twice would be worse than not at all
		}
		for _, k := range inDays {
			n := days[k]
			if _, err := t.exec(addUsage, k.Day, k.Owner, k.Model, n.Requests, n.TokensIn, n.TokensOut); err != nil {
				return err
			}
		}
		for _, k := range inHours {
			n := used[k]
			if _, err := t.exec(addHourly, k.Hour, k.Owner, k.Model, n.Requests, n.TokensIn, n.TokensOut); err != nil {
				return err
			}
		}
		return nil
	})
}

// Usage returns the usage of all owners from one day to another, both included.
func (s usages) Usage(ctx context.Context, from, to int) (map[UsageKey]UsageCount, error) {
	return readUsage(ctx, s.connection, selectUsage, []any{from, to}, usageFields)
}

// UsageOf is like [Store.Usage] for one owner.
func (s usages) UsageOf(ctx context.Context, owner string, from, to int) (map[UsageKey]UsageCount, error) {
	return readUsage(ctx, s.connection, selectOwnUsage, []any{from, to, owner}, usageFields)
}

func usageFields(k *UsageKey) []any { return []any{&k.Day, &k.Owner, &k.Model} }

// readUsage reads rows that begin with the fields of a key.
func readUsage[K UsageKey | HourKey](ctx context.Context, s *connection, query string, args []any, fields func(*K) []any) (
	used map[K]UsageCount, err error,
) {
	err = s.read(ctx, func(t *tx) error {
		used = map[K]UsageCount{}
		return t.each(query, args, func(scan func(...any) error) error {
			var k K
			var n UsageCount
			err := scan(append(fields(&k), &n.Requests, &n.TokensIn, &n.TokensOut)...)
			used[k] = n
			return err
		})
	})
	return used, err
}

// HourKey identifies the use of a model by an owner in an hour.
type HourKey struct {
	Hour  int    // since 1970
	Owner string // may be empty
	Model string // key of the model
}

// Hour returns the number of the hour for an [HourKey].
func Hour(t time.Time) int { return int(t.Unix() / (60 * 60)) }

// hoursKept is how many hours are told apart: 31 days. Of older ones, only the usage of each day is kept.
const hoursKept = 31 * 24

const (
	addHourly = `INSERT INTO hourly_usage (hour, owner, model, requests, tokens_in, tokens_out) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (hour, owner, model) DO UPDATE SET requests = hourly_usage.requests + excluded.requests,
			tokens_in = hourly_usage.tokens_in + excluded.tokens_in, tokens_out = hourly_usage.tokens_out + excluded.tokens_out`

	selectHourly = `SELECT hour, '', model, CAST(sum(requests) AS BIGINT), CAST(sum(tokens_in) AS BIGINT), CAST(sum(tokens_out) AS BIGINT)
		FROM hourly_usage WHERE hour BETWEEN $1 AND $2 GROUP BY hour, model`

	selectOwnHourly = `SELECT hour, owner, model, requests, tokens_in, tokens_out FROM hourly_usage
		WHERE hour BETWEEN $1 AND $2 AND owner = $3`

	dropHours = `DELETE FROM hourly_usage WHERE hour < $1`
)

// HourlyUsage returns the usage from one hour to another, both included: of all owners together, whose keys have no owner, or of the
// given one.
func (s usages) HourlyUsage(ctx context.Context, owner *string, from, to int) (map[HourKey]UsageCount, error) {
	query, args := selectHourly, []any{from, to}
	if owner != nil {
		query, args = selectOwnHourly, append(args, *owner)
	}
	return readUsage(ctx, s.connection, query, args, func(k *HourKey) []any { return []any{&k.Hour, &k.Owner, &k.Model} })
}

// PruneHours deletes the usage of hours that aren't told apart any more.
func (s usages) PruneHours(ctx context.Context, now time.Time) error {
	return s.exec(ctx, dropHours, Hour(now)-hoursKept)
}
