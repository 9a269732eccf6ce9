package store

import (
	"context"
	"fmt"
	"math"
	"time"
)

// pruneTurns bounds the turns removed in one transaction, since other writes wait for it.
const pruneTurns = 500

// Prune removes what exceeds the bounds, and returns the number of turns removed, even with an error. It works in small
// transactions, so that other writes can run in between. Its cost depends on what it removes, not on what is stored.
func (s *Store) Prune(ctx context.Context, b Bounds) (removed int, err error) {
	if b.Age < 0 || b.Number < 0 {
		return 0, fmt.Errorf("the bounds of a store can't be negative: age %s, number %d", b.Age, b.Number)
	}
	pieces := func(next func() (piece, error)) error {
		for {
			p, err := next()
			if err != nil || p.most <= 0 {
				return err
			}
			_, n, err := s.prunePiece(ctx, p)
			removed += n
			if err != nil || n == 0 {
				return err
			}
		}
	}
	if b.Age > 0 {
		before := time.Now().Add(-b.Age).UnixNano()
		if err := pieces(func() (piece, error) { return piece{before: before, most: pruneTurns}, nil }); err != nil {
			return removed, err
		}
	}
	if b.Number > 0 {
		if err := pieces(func() (piece, error) {
			stored := 0 // turns, including hidden ones
			err := s.read(ctx, func(t *tx) error {
				_, err := t.row(selectNumber, nil, &stored)
				return err
			})
			return piece{before: math.MaxInt64, most: stored - b.Number}, err
		}); err != nil {
			return removed, err
		}
	}
	// Finish a family that was too large for one piece. The whole family is removed, even if fewer turns had to be.
	err = pieces(func() (piece, error) { return piece{before: 1, most: pruneTurns}, nil })
	return removed, err
}

const selectNumber = `SELECT CAST(sum(turns) AS BIGINT) FROM counters`

// piece says what to remove in one transaction: families whose newest turn was created before a time, in nanoseconds since
// 1970, oldest first, up to a number of turns.
type piece struct {
	before int64
	most   int
	of     *string // their owner; nil: anybody
}

const (
	selectOldest = `SELECT id, turns FROM families WHERE newest < $1 ORDER BY newest LIMIT 100`

	deleteTurns = `DELETE FROM turns WHERE family = $1 RETURNING images`

	dropFamily = `DELETE FROM families WHERE id = $1`

	// deleteDeepest removes leaves first, so that what remains is a tree.
	deleteDeepest = `DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE family = $1 ORDER BY depth DESC LIMIT $2) RETURNING images`

	// halveFamily marks a family as being removed. A new turn that continues the rest of it clears the mark.
	halveFamily = `UPDATE families SET turns = turns - $2, newest = 0 WHERE id = $1`
)

// prunePiece returns the families of which it removed turns, and the number of these; none if nothing is left to remove.
func (s *Store) prunePiece(ctx context.Context, p piece) (families []family, removed int, err error) {
	err = s.write(ctx, 0, func(t *tx) (err error) {
		removed = 0
		if families, err = oldest(t, p); err != nil {
			return err
		}
		blobs := released{}
		for _, f := range families {
			n, err := f.remove(t, blobs)
			if err != nil {
				return err
			}
			removed += n
		}
		if err := blobs.run(t); err != nil || removed == 0 {
			return err
		}
		return count(t, families[0].id, -removed)
	})
	if err == nil && s.pruned != nil && len(families) > 0 {
		ids := make([]string, len(families))
		for i, f := range families {
			ids[i] = f.id
		}
		s.pruned(ids)
	}
	if err != nil {
		return nil, removed, err
	}
	return families, removed, nil
}

type family struct {
	id    string
	turns int
}

// oldest returns the families of a piece, at least one, and locks them.
func oldest(t *tx, p piece) ([]family, error) {
	var families []family
	turns, full := 0, false
	query, args := selectOldest, []any{p.before}
	if p.of != nil {
		query, args = selectOldestOf, append(args, *p.of)
	}
	err := t.each(query+"{lock}", args, func(scan func(...any) error) error {
		var f family
		if err := scan(&f.id, &f.turns); err != nil {
			return err
		}
		full = full || turns >= p.most || turns > 0 && turns+f.turns > pruneTurns
		if !full {
			families = append(families, f)
			turns += f.turns
		}
		return nil
	})
	return families, err
}

// remove removes a family, or the end of one that is too large, and returns the number of turns.
func (f family) remove(t *tx, blobs released) (removed int, err error) {
	t.deletes = true
	query, args := deleteTurns, []any{f.id}
	if f.turns > pruneTurns {
		query, args = deleteDeepest, []any{f.id, pruneTurns}
	}
	if err := t.each(query, args, func(scan func(...any) error) error {
		var images string
		if err := scan(&images); err != nil {
			return err
		}
		blobs.add(images)
		removed++
		return nil
	}); err != nil {
		return 0, err
	}
	if f.turns > pruneTurns {
		_, err = t.exec(halveFamily, f.id, removed)
	} else {
		_, err = t.exec(dropFamily, f.id)
	}
	return removed, err
}
