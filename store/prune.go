package store

import (
	"context"
	"fmt"
	"math"
	"time"
)

// pruneTurns is how many turns are removed in one transaction: others wait for it only so long.
const pruneTurns = 500

// Prune removes what is out of bounds, and gives the number of turns that it removed, also with an error. It works in small
// pieces and lets others write in between; what it costs depends on what it removes, not on what is stored.
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
			n, err := s.prunePiece(ctx, p)
			removed += n
			if err != nil || n == 0 {
				return err
			}
		}
	}
	if b.Age > 0 {
		before := time.Now().Add(-b.Age).UnixNano()
		if err := pieces(func() (piece, error) { return piece{before, pruneTurns}, nil }); err != nil {
			return removed, err
		}
	}
	if b.Number > 0 {
		if err := pieces(func() (piece, error) {
			stored, err := s.number(ctx)
			return piece{math.MaxInt64, stored - b.Number}, err
		}); err != nil {
			return removed, err
		}
	}
	// A family that was too large for one piece goes as a whole, though it be more than had to go.
	err = pieces(func() (piece, error) { return piece{1, pruneTurns}, nil })
	return removed, err
}

const selectNumber = `SELECT CAST(sum(turns) AS BIGINT) FROM counters`

// number is how many turns are stored, hidden ones included.
func (s *Store) number(ctx context.Context) (number int, err error) {
	err = s.read(ctx, func(q querier) error {
		_, err := one(ctx, q, selectNumber, nil, &number)
		return err
	})
	return number, err
}

// piece is what is removed in one transaction: of the families whose newest turn is from before some time, in nanoseconds
// since 1970, those that have been left alone for the longest, until there are so many turns.
type piece struct {
	before int64
	most   int
}

const (
	selectOldest = `SELECT id, turns FROM families WHERE newest < $1 ORDER BY newest LIMIT 100`

	deleteTurns = `DELETE FROM turns WHERE family = $1 RETURNING images`

	dropFamily = `DELETE FROM families WHERE id = $1`

	// deleteDeepest leaves a tree, as no turn is removed before those that continue it.
	deleteDeepest = `DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE family = $1 ORDER BY depth DESC LIMIT $2) RETURNING images`

	// halveFamily marks a family that is being removed. A turn that continues what is left of it ends that.
	halveFamily = `UPDATE families SET turns = turns - $2, newest = 0 WHERE id = $1`
)

// prunePiece gives the number of turns that it removed; 0: there is nothing more of that.
func (s *Store) prunePiece(ctx context.Context, p piece) (removed int, err error) {
	err = s.write(ctx, 0, func(t *tx) error {
		removed = 0
		families, err := oldest(t, p)
		if err != nil {
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
	return removed, err
}

type family struct {
	id    string
	turns int
}

// oldest gives the families of a piece, and locks them: no more of them than it takes, but at least one.
func oldest(t *tx, p piece) ([]family, error) {
	var families []family
	turns, full := 0, false
	err := t.each(selectOldest+t.skip, []any{p.before}, func(scan func(...any) error) error {
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

// remove removes a family, or the end of one that is too large for one piece. It gives the number of turns.
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
