package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

const (
	insertUnfinished = `INSERT INTO unfinished (id, alive, maker) VALUES ($1, {now}, $2)`

	deleteUnfinished = `DELETE FROM unfinished WHERE id = $1`

	renewUnfinished = `UPDATE unfinished SET alive = {now} WHERE id = $1`

	selectUnfinished = `SELECT id FROM unfinished u WHERE alive <= {now} - $1 OR maker <> '' AND alive <= {now} - $2
		AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.boot = u.maker) ORDER BY id`

	// selectLost finds a turn whose maker has gone, or not been seen for some time.
	selectLost = `SELECT id FROM unfinished u WHERE id = $1 AND maker <> ''
		AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.boot = u.maker AND n.seen > {now} - $2)`

	failTurn = `UPDATE turns SET status = 'failed' WHERE id = $1 AND status = 'in_progress'`

	selectImages = `SELECT images FROM turns WHERE id = $1 AND status = 'in_progress'`

	finishTurn = `UPDATE turns SET model = $2, status = $3, images = $4, body = $5 WHERE id = $1`
)

// Finish replaces a turn that was stored with the status [InProgress] by one with the same ID and owner whose answer is complete. The
// parent and the time stay as they were. When it returns nil, the turn is on disk.
//
// Storing the same end again does nothing. The error is *[NotFound] if the owner has no such turn, for example because it was deleted
// in the meantime, *[Exists] if it has ended in another way, and otherwise like those of [Store.Put].
func (s *Store) Finish(ctx context.Context, t *Turn) error {
	p, err := prepare(t)
	if err != nil {
		return err
	}
	if t.Status == InProgress {
		return &Invalid{ID: t.ID, Reason: "it isn't finished"}
	}
	err = s.write(ctx, p.size(), p.finish)
	if _, same := errors.AsType[*already](err); same {
		return nil
	}
	return err
}

func (p *put) finish(t *tx) error {
	if _, err := t.exec(deleteUnfinished, p.ID); err != nil {
		return err
	}
	found, err := t.row(selectFamily, []any{p.ID, p.Owner}, &p.family)
	if err == nil && found {
		_, err = t.exec(lockFamily, p.family)
	}
	switch {
	case err != nil:
		return err
	case !found:
		return &NotFound{ID: p.ID}
	}
	var images string
	found, err = t.row(selectImages, []any{p.ID}, &images)
	switch {
	case err != nil:
		return err
	case !found: // it isn't in progress
		there, isThere, err := selectStored(t, p.ID)
		switch {
		case err != nil:
			return err
		case !isThere || there.hidden:
			return &NotFound{ID: p.ID}
		case there.Model == p.Model && there.Status == p.Status && bytes.Equal(there.body, p.body):
			return &already{there.Family, there.created}
		}
		return &Exists{ID: p.ID}
	}
	if _, err := t.exec(finishTurn, p.ID, p.Model, string(p.Status), joined(p.blobs), p.body); err != nil {
		return err
	}
	return p.replaceImages(t, images)
}

// replaceImages stores the turn's images, and releases those that it had before, as in the column turns.images.
func (p *put) replaceImages(t *tx, before string) error {
	old := strings.Fields(before)
	for _, b := range p.blobs {
		if i := slices.Index(old, b.hash); i >= 0 {
			old = slices.Delete(old, i, i+1)
		} else if err := putBlob(t, b); err != nil {
			return err
		}
	}
	if len(old) == 0 {
		return nil
	}
	t.deletes = true
	gone := released{}
	gone.add(strings.Join(old, " "))
	return gone.run(t)
}

// Renew says that the answers of turns in progress are still being made. It returns the IDs of those that are no longer in progress,
// because they were deleted or have ended in another way.
func (s *Store) Renew(ctx context.Context, ids []string) (gone []string, err error) {
	ids = slices.Sorted(slices.Values(ids)) // always locked in the same order
	err = s.write(ctx, 0, func(t *tx) error {
		gone = nil
		for _, id := range ids {
			n, err := t.exec(renewUnfinished, id)
			if err != nil {
				return err
			}
			if n == 0 {
				gone = append(gone, id)
			}
		}
		return nil
	})
	return gone, err
}

// FailUnfinished gives the status [Failed] to the turns in progress whose makers have crashed: those that were not renewed for an age, by
// the database's clock, or for a shorter age if the maker is a server of a cluster that isn't listed any more. It returns the number of
// these turns. If there are none, nothing is written.
func (s *Store) FailUnfinished(ctx context.Context, age, unlisted time.Duration) (failed int, err error) {
	return s.fail(ctx, selectUnfinished, age.Nanoseconds(), unlisted.Nanoseconds())
}

// GiveUp gives the status [Failed] to a turn in progress if its maker is a server of a cluster that isn't listed any more, or has not
// written its row for some time. It reports whether it did.
func (s *Store) GiveUp(ctx context.Context, id string, unseen time.Duration) (bool, error) {
	failed, err := s.fail(ctx, selectLost, id, unseen.Nanoseconds())
	return failed > 0, err
}

// fail fails the turns in progress that a query finds.
func (s *Store) fail(ctx context.Context, query string, args ...any) (failed int, err error) {
	var ids []string
	if err := s.read(ctx, func(t *tx) (err error) {
		ids, err = column[string](t, query, args...)
		return err
	}); err != nil || len(ids) == 0 {
		return 0, err
	}
	err = s.write(ctx, 0, func(t *tx) error {
		failed = 0
		ids, err := column[string](t, query+"{lock}", args...)
		if err != nil {
			return err
		}
		for _, id := range ids {
			n, err := t.exec(failTurn, id)
			if err == nil {
				failed += int(n)
				_, err = t.exec(deleteUnfinished, id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return failed, err
}
