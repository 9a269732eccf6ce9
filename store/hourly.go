package store

import (
	"context"
	"time"
)

// HourKey identifies the use of a model by an owner in an hour.
type HourKey struct {
	Hour  int    // since 1970
	Owner string // may be empty
	Model string // key of the model
}

// day is the key of the day that the hour is in.
func (k HourKey) day() UsageKey { return UsageKey{Day: k.Hour / 24, Owner: k.Owner, Model: k.Model} }

// Hour returns the number of the hour for an [HourKey].
func Hour(t time.Time) int { return int(t.Unix() / (60 * 60)) }

// hoursKept is how many hours are told apart: 31 days. Of older ones, only the usage of each day is kept.
const hoursKept = 31 * 24

const (
	addHourly = `INSERT INTO hourly_usage (hour, owner, model, requests, tokens_in, tokens_out) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (hour, owner, model) DO UPDATE SET requests = hourly_usage.requests + excluded.requests,
			tokens_in = hourly_usage.tokens_in + excluded.tokens_in, tokens_out = hourly_usage.tokens_out + excluded.tokens_out`

	selectHourly = `SELECT hour, '', model, CAST(sum(requests) AS BIGINT), CAST(sum(tokens_in) AS BIGINT), CAST(sum(tokens_out) AS BIGINT) FROM hourly_usage
		WHERE hour BETWEEN $1 AND $2 GROUP BY hour, model`

	selectOwnHourly = `SELECT hour, owner, model, requests, tokens_in, tokens_out FROM hourly_usage
		WHERE hour BETWEEN $1 AND $2 AND owner = $3`

	dropHours = `DELETE FROM hourly_usage WHERE hour < $1`
)

// HourlyUsage returns the usage from one hour to another, both included: of all owners together, whose keys have no owner, or of the given one.
func (s *Store) HourlyUsage(ctx context.Context, owner *string, from, to int) (map[HourKey]UsageCount, error) {
	query, args := selectHourly, []any{from, to}
	if owner != nil {
		query, args = selectOwnHourly, append(args, *owner)
	}
	var used map[HourKey]UsageCount
	err := s.read(ctx, func(q querier) error {
		used = map[HourKey]UsageCount{}
		return each(ctx, q, query, args, func(scan func(...any) error) error {
			var k HourKey
			var n UsageCount
			err := scan(&k.Hour, &k.Owner, &k.Model, &n.Requests, &n.TokensIn, &n.TokensOut)
			used[k] = n
			return err
		})
	})
	return used, err
}

// PruneHours deletes the usage of hours that aren't told apart any more.
func (s *Store) PruneHours(ctx context.Context, now time.Time) error {
	return s.write(ctx, 0, func(t *tx) error {
		_, err := t.exec(dropHours, Hour(now)-hoursKept)
		return err
	})
}
