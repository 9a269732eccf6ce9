package store

import (
	"context"
	"fmt"
	"time"
)

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
