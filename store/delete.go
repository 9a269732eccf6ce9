package store

import "context"

// Delete removes a turn: from then on its id is unknown. Turns that continue it keep their conversation, so its content goes
// with the last of them. An id that the owner doesn't have is *[NotFound].
func (s *Store) Delete(ctx context.Context, owner, id string) error {
	if !possible(id) || owner != "" && !possible(owner) {
		return &NotFound{ID: id}
	}
	return s.write(ctx, 0, func(t *tx) error {
		err := remove(t, owner, id)
		if _, gone := err.(*NotFound); gone && t.again { //nolint:errorlint // it isn't wrapped
			return nil // the try before did it, though we weren't told
		}
		return err
	})
}

const (
	selectFamily = `SELECT family FROM turns WHERE id = $1 AND owner = $2 AND NOT hidden`

	lockFamily = `UPDATE families SET turns = turns WHERE id = $1`

	// deleteLeaf removes a turn if it is as hidden as is said, and no other continues it.
	deleteLeaf = `DELETE FROM turns WHERE id = $1 AND hidden = $3
		AND NOT EXISTS (SELECT 1 FROM turns c WHERE c.family = $2 AND c.parent = $1) RETURNING coalesce(parent, ''), images`

	hideTurn = `UPDATE turns SET hidden = TRUE WHERE id = $1 AND NOT hidden`

	shrinkFamily = `UPDATE families SET turns = turns - $2,
		newest = coalesce((SELECT max(created) FROM turns WHERE family = $1), 0) WHERE id = $1`

	deleteFamily = `DELETE FROM families WHERE id = $1 AND turns <= 0`
)

// remove deletes a turn, and the hidden ones before it that nothing continues any more.
func remove(t *tx, owner, id string) error {
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
	if removed == 0 {
		return hide(t, id)
	}
	if err := shrink(t, family, removed); err != nil {
		return err
	}
	if err := blobs.run(t); err != nil {
		return err
	}
	return count(t, family, -removed)
}

// hide makes a turn unknown that others continue.
func hide(t *tx, id string) error {
	n, err := t.exec(hideTurn, id)
	if err == nil && n == 0 {
		return &NotFound{ID: id} // another was quicker
	}
	return err
}

// shrink takes turns from a family, that are removed already, and the family if they were its last.
func shrink(t *tx, family string, removed int) error {
	if _, err := t.exec(shrinkFamily, family, removed); err != nil {
		return err
	}
	_, err := t.exec(deleteFamily, family)
	return err
}
