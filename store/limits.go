package store

import (
	"context"
	"time"
)

const (
	// lockLimits returns an owner's row, which is locked until the transaction ends, and makes it if there is none.
	lockLimits = `INSERT INTO limits (owner, state, seen) VALUES ($1, '', {now})
		ON CONFLICT (owner) DO UPDATE SET seen = excluded.seen RETURNING state, seen`

	setLimits = `UPDATE limits SET state = $2 WHERE owner = $1`

	deleteOldLimits = `DELETE FROM limits WHERE seen < {now} - $1`
)

// ChangeLimits changes what the servers of a cluster have counted of an owner. change gets the state, which is empty at first, and the time
// by the database's clock, and returns the new state. It may run twice. If it returns an error, nothing changes, and ChangeLimits
// returns that error.
func (s *Store) ChangeLimits(ctx context.Context, owner string, change func(state string, now time.Time) (string, error)) error {
	var refusal error
	err := s.write(ctx, 0, func(t *tx) error {
		var state string
		var now int64
		if _, err := t.row(s.timed(lockLimits), []any{owner}, &state, &now); err != nil {
			return err
		}
		var changed string
		if changed, refusal = change(state, moment(now)); refusal != nil {
			return nil
		}
		_, err := t.exec(setLimits, owner, changed)
		return err
	})
	if err != nil {
		return err
	}
	return refusal
}

// PruneLimits deletes what nobody has changed for some time.
func (s *Store) PruneLimits(ctx context.Context, kept time.Duration) error {
	return s.write(ctx, 0, func(t *tx) error {
		_, err := t.exec(s.timed(deleteOldLimits), kept.Nanoseconds())
		return err
	})
}
