package store

import "context"

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

// hide hides a turn that others continue.
func hide(t *tx, id string) error {
	n, err := t.exec(hideTurn, id)
	if err == nil && n == 0 {
		return &NotFound{ID: id} // another transaction was faster
	}
	return err
}

// shrink subtracts removed turns from a family, and removes the family if none is left.
func shrink(t *tx, family string, removed int) error {
	if _, err := t.exec(shrinkFamily, family, removed); err != nil {
		return err
	}
	_, err := t.exec(deleteFamily, family)
	return err
}
