package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	selectTurn = `SELECT id, coalesce(parent, ''), family, owner, model, status, created, depth, body FROM turns
		WHERE id = $1 AND owner = $2 AND NOT hidden`

	// The recursion carries the bodies. A join to look them up would cost more, and a planner that misjudges the length of the chain
	// might scan the whole table. The decreasing depth ends the recursion even if parents form a cycle.
	selectChain = `WITH RECURSIVE chain (id, parent, family, owner, model, status, created, depth, body) AS (
		SELECT id, parent, family, owner, model, status, created, depth, body FROM turns
			WHERE id = $1 AND owner = $2 AND NOT hidden
		UNION ALL
		SELECT t.id, t.parent, t.family, t.owner, t.model, t.status, t.created, t.depth, t.body
			FROM chain c JOIN turns t ON t.id = c.parent AND t.depth < c.depth
	) SELECT id, coalesce(parent, ''), family, owner, model, status, created, depth, body FROM chain`

	selectBranches = `SELECT id, coalesce(parent, ''), family, owner, model, status, created, depth, body FROM turns
		WHERE family = $1 AND owner = $2 ORDER BY created DESC, id DESC LIMIT 1000`
)

// Get returns a turn with the data of its images. The error is *[NotFound] if the owner has no such turn.
func (s *Store) Get(ctx context.Context, owner, id string) (*Turn, error) {
	turns, err := s.turns(ctx, selectTurn, owner, id)
	if err != nil {
		return nil, err
	}
	return turns[0], nil
}

// Chain returns the conversation that ends with a turn, from its first turn on, with the data of images. It includes deleted
// turns that others continue. The error is *[NotFound] if the owner has no such turn.
//
// Turns with the same image share its Data, which must not be modified.
func (s *Store) Chain(ctx context.Context, owner, id string) ([]*Turn, error) {
	return s.turns(ctx, selectChain, owner, id)
}

// Branches returns the newest turns of a conversation in all of its branches, at most 1000, the oldest first, with the data of images.
// It includes deleted turns that others continue. The conversation is named by its first turn. The error is *[NotFound] if the owner has
// no such conversation.
func (s *Store) Branches(ctx context.Context, owner, id string) ([]*Turn, error) {
	turns, err := s.turns(ctx, selectBranches, owner, id)
	slices.SortStableFunc(turns, func(a, b *Turn) int { return a.Created.Compare(b.Created) }) // a turn is deeper than what it continues
	return turns, err
}

// turns runs one of the queries above. It returns at least one turn, or an error.
func (s *Store) turns(ctx context.Context, query, owner, id string) ([]*Turn, error) {
	if !possible(id) || owner != "" && !possible(owner) {
		return nil, &NotFound{ID: id}
	}
	var turns []*Turn
	err := s.read(ctx, func(t *tx) error {
		// Turns that are deleted between the two queries are gone in the second round.
		for range 2 {
			var missing *Turn
			var err error
			if turns, err = scan(t, query, owner, id); err != nil {
				return err
			}
			if missing, err = readImages(t, turns); err != nil || missing == nil {
				return err
			}
			err = fmt.Errorf("an image of the stored response %q is missing", missing.ID)
			if again, _ := scan(t, query, owner, id); again != nil {
				return err
			}
		}
		return nil
	})
	return turns, err
}

// scan returns turns sorted by depth.
func scan(t *tx, query, owner, id string) ([]*Turn, error) {
	type row struct {
		*Turn

		depth int
	}
	rows, err := collect(t, query, []any{id, owner}, func(r *row, scan func(...any) error) error {
		r.Turn = new(Turn)
		var created int64
		var body []byte
		if err := scan(&r.ID, &r.Parent, &r.Family, &r.Owner, &r.Model, &r.Status, &created, &r.depth, &body); err != nil {
			return err
		}
		r.Created = time.Unix(0, created)
		return decode(body, r.Turn)
	})
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, &NotFound{ID: id}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.depth, b.depth) })
	if query == selectChain && rows[len(rows)-1].depth != len(rows)-1 {
		return nil, fmt.Errorf("turns that the stored response %q continues are missing", id)
	}
	turns := make([]*Turn, len(rows))
	for i, r := range rows {
		turns[i] = r.Turn
	}
	return turns, nil
}
