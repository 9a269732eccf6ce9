package store

import (
	"context"
	"fmt"
	"time"
)

// Delete deletes a turn: its ID becomes unknown. If other turns continue it, its content is kept until the last of them is
// deleted. The error is *[NotFound] if the owner has no such turn.
func (s *Store) Delete(ctx context.Context, owner, id string) error {
	if !possible(id) || owner != "" && !possible(owner) {
		return &NotFound{ID: id}
	}
	return s.write(ctx, 0, func(t *tx) error {
		err := remove(t, owner, id)
		if _, gone := err.(*NotFound); gone && t.again { //nolint:errorlint // it isn't wrapped
			return nil // the first try succeeded, but the connection broke
		}
		return err
	})
}

const (
	selectFamily = `SELECT family FROM turns WHERE id = $1 AND owner = $2 AND NOT hidden`

	lockFamily = `UPDATE families SET turns = turns WHERE id = $1`

	// deleteLeaf removes a turn with the given state of hidden, unless another turn continues it.
	deleteLeaf = `DELETE FROM turns WHERE id = $1 AND hidden = $3
		AND NOT EXISTS (SELECT 1 FROM turns c WHERE c.family = $2 AND c.parent = $1) RETURNING coalesce(parent, ''), images`

	hideTurn = `UPDATE turns SET hidden = TRUE WHERE id = $1 AND NOT hidden`

	shrinkFamily = `UPDATE families SET turns = turns - $2,
		newest = coalesce((SELECT max(created) FROM turns WHERE family = $1), 0) WHERE id = $1`

	deleteFamily = `DELETE FROM families WHERE id = $1 AND turns <= 0`
)

// remove removes a turn, and the hidden ones before it that no turn continues any more.
func remove(t *tx, owner, id string) error {
	if _, err := t.exec(deleteUnfinished, id); err != nil {
		return err
	}
	var family string
	found, err := t.row(selectFamily, []any{id, owner}, &family)
	if err == nil && found {
		_, err = t.exec(lockFamily, family)
	}
	switch {
	case err != nil:
		return err
	case !found:
		return &NotFound{ID: id}
	}
	blobs := released{}
	removed := 0
	for at := id; at != ""; removed++ {
		var parent, images string
		found, err := t.row(deleteLeaf, []any{at, family, removed > 0}, &parent, &images)
		if err != nil {
			return err
		}
		if !found {
			break
		}
		blobs.add(images)
		t.deletes = true
		at = parent
	}
	if removed == 0 { // others continue it
		n, err := t.exec(hideTurn, id)
		if err == nil && n == 0 {
			return &NotFound{ID: id} // another transaction was faster
		}
		return err
	}
	if _, err := t.exec(shrinkFamily, family, removed); err != nil {
		return err
	}
	if _, err := t.exec(deleteFamily, family); err != nil {
		return err
	}
	if err := blobs.run(t); err != nil {
		return err
	}
	return count(t, family, -removed)
}

const (
	deleteUnfinishedOf = `DELETE FROM unfinished WHERE id IN (SELECT id FROM turns WHERE family = $1)`

	lockOwnFamily = `UPDATE families SET turns = turns WHERE id = $1 AND owner = $2`

	selectOldestOf = `SELECT id, turns FROM families WHERE owner = $2 AND newest < $1 ORDER BY newest LIMIT 100`
)

// DeleteConversation deletes a conversation with all of its branches. The error is *[NoConversation] if the owner has none with this
// ID, which is that of its first turn.
func (s *Store) DeleteConversation(ctx context.Context, owner, id string) error {
	if !possible(id) || owner != "" && !possible(owner) {
		return &NoConversation{ID: id}
	}
	return s.write(ctx, 0, func(t *tx) error {
		if _, err := t.exec(deleteUnfinishedOf, id); err != nil {
			return err
		}
		n, err := t.exec(lockOwnFamily, id, owner)
		switch {
		case err != nil:
			return err
		case n == 0 && t.again:
			return nil // the first try succeeded, but the connection broke
		case n == 0:
			return &NoConversation{ID: id} // which brings back what was deleted above
		}
		blobs := released{}
		removed, err := family{id: id}.remove(t, blobs) // as a whole, however many turns it has
		if err == nil {
			err = blobs.run(t)
		}
		if err != nil {
			return err
		}
		return count(t, id, -removed)
	})
}

// DeleteConversations deletes the conversations of an owner whose newest turn was made before a time, and returns their number, even
// with an error. Like Prune, it works in small transactions, and calls Options.Pruned.
func (s *Store) DeleteConversations(ctx context.Context, owner string, before time.Time) (deleted int, err error) {
	if owner != "" && !possible(owner) {
		return 0, nil
	}
	for {
		families, _, err := s.prunePiece(ctx, piece{before: before.UnixNano(), most: pruneTurns, of: &owner})
		for _, f := range families {
			if f.turns <= pruneTurns { // otherwise, only its end was removed
				deleted++
			}
		}
		if err != nil {
			return deleted, fmt.Errorf("deleting conversations: %w", err)
		}
		if len(families) == 0 {
			return deleted, nil
		}
	}
}

// Deleted data must disappear from the files, and its space must be returned to the disk. secure_delete=ON overwrites it in the
// database. Truncating the write-ahead log removes it there. Empty pages are cut off the end of the file, which requires that
// the database was created with auto_vacuum=INCREMENTAL.
const (
	// cutPages cuts off 1 MiB at a time, since writes wait for it.
	cutPages = "PRAGMA incremental_vacuum(256)"
	// sparePages is the number of empty pages to keep.
	sparePages = 256
	// tidyPause is the pause before tidying, and between its steps.
	tidyPause = 20 * time.Millisecond
	// tidyRetry is the pause after a failure, or if readers of old data prevent tidying.
	tidyRetry = time.Second
)

// tidy is called by the writer only, like [sqliteFile.transact].
func (s *sqliteFile) tidy() (pause time.Duration) {
	if !s.untidy {
		return 0
	}
	t := &tx{ctx: context.Background(), q: s.session, dialect: sqliteDialect}
	var empty int
	if _, err := t.row("PRAGMA freelist_count", nil, &empty); err != nil {
		return tidyRetry
	}
	if empty > sparePages && s.returnsPages {
		// The result has a row for each page.
		if err := t.each(cutPages, nil, func(func(...any) error) error { return nil }); err != nil {
			return tidyRetry
		}
		return tidyPause
	}
	var busy, pages, moved int
	if _, err := t.row("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &pages, &moved); err != nil || busy != 0 {
		return tidyRetry
	}
	s.untidy = false
	return 0
}
