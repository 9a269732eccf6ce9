package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Put stores a turn. It sets the turn's Family, and Created if that is zero. When it returns nil, the turn is on disk. A turn with
// the status [InProgress] is replaced later by [Store.Finish].
//
// Storing the same turn again does nothing. The error is *[NotFound] if the owner has no such parent, *[Exists] if the ID is
// taken, *[TooDeep] if the conversation is too long, or *[Invalid] if the turn can't be stored. After these errors, and after
// the error of ctx, the turn isn't stored. After another error of a PostgreSQL store it may be stored, because the connection
// may have broken after the commit.
//
// Images must have Data. Their Hash is ignored.
func (s *Store) Put(ctx context.Context, t *Turn) error { return s.put(ctx, t, false) }

// Announce is Put for a turn in progress whose client waits for its answer. What it has stored when it returns nil outlives this process,
// but perhaps not the machine: it costs no flush to disk.
func (s *Store) Announce(ctx context.Context, t *Turn) error { return s.put(ctx, t, true) }

func (s *Store) put(ctx context.Context, t *Turn, loose bool) error {
	p, err := prepare(t)
	if err != nil {
		return err
	}
	err = s.do(&job{ctx: ctx, size: p.size(), loose: loose, run: p.run})
	if same, ok := errors.AsType[*already](err); ok {
		p.family, p.created = same.family, same.created
	} else if err != nil {
		return err
	}
	t.Family, t.Created = p.family, time.Unix(0, p.created)
	return nil
}

// put is a turn prepared for storing.
type put struct {
	*Turn
	created int64 // in nanoseconds since 1970
	body    []byte
	blobs   []blob
	family  string
}

func prepare(t *Turn) (*put, error) {
	switch {
	case !possible(t.ID) || t.ID == t.Parent:
		return nil, &Invalid{ID: t.ID, Reason: "the id can't be used"}
	case t.Owner != "" && !possible(t.Owner) || t.Model != "" && !possible(t.Model):
		return nil, &Invalid{ID: t.ID, Reason: "its owner and its model must be UTF-8 without zero bytes"}
	case t.Parent != "" && !possible(t.Parent):
		return nil, &NotFound{ID: t.Parent}
	case !slices.Contains(statuses, t.Status):
		return nil, &Invalid{ID: t.ID, Reason: fmt.Sprintf("there is no status %q", t.Status)}
	}
	created := t.Created
	if created.IsZero() {
		created = time.Now()
	}
	if created.UnixNano() <= 0 {
		return nil, &Invalid{ID: t.ID, Reason: "it is from before 1970"}
	}
	body, blobs, err := encode(t)
	if err != nil {
		return nil, err
	}
	return &put{Turn: t, created: created.UnixNano(), body: body, blobs: blobs}, nil
}

func (p *put) size() int {
	size := len(p.body)
	for _, b := range p.blobs {
		size += len(b.data)
	}
	return size
}

// These statements lock the family.
const (
	insertFamily = `INSERT INTO families (id, newest, turns, owner, dialect, title) VALUES ($1, $2, 1, $3, $4, $5)
		ON CONFLICT (id) DO NOTHING`

	growFamily = `UPDATE families SET turns = turns + 1, newest = CASE WHEN newest < $3 THEN $3 ELSE newest END
		WHERE id = (SELECT family FROM turns WHERE id = $1 AND owner = $2 AND NOT hidden) RETURNING id`
)

const (
	insertFirst = `INSERT INTO turns (id, parent, family, owner, model, status, created, depth, images, body)
		VALUES ($1, NULL, $1, $2, $3, $4, $5, 0, $6, $7) ON CONFLICT (id) DO NOTHING`

	insertNext = `INSERT INTO turns (id, parent, family, owner, model, status, created, depth, images, body)
		SELECT $1, id, family, owner, $4, $5, $6, depth + 1, $7, $8 FROM turns
		WHERE id = $2 AND owner = $3 AND NOT hidden AND depth < $9 ON CONFLICT (id) DO NOTHING`

	selectSame = `SELECT coalesce(parent, ''), family, owner, model, status, created, hidden, body FROM turns WHERE id = $1`

	selectDepth = `SELECT depth FROM turns WHERE id = $1 AND owner = $2 AND NOT hidden`
)

func (p *put) run(t *tx) error {
	var inserted bool
	var err error
	if p.Parent == "" {
		inserted, err = p.first(t)
	} else {
		inserted, err = p.next(t)
	}
	if err != nil {
		return err
	}
	if !inserted {
		return p.hindrance(t)
	}
	for _, b := range p.blobs {
		if err := putBlob(t, b); err != nil {
			return err
		}
	}
	if p.Status == InProgress {
		if _, err := t.exec(insertUnfinished, p.ID, p.Maker); err != nil {
			return err
		}
	}
	return count(t, p.family, 1)
}

func (p *put) first(t *tx) (inserted bool, err error) {
	p.family = p.ID
	if _, err := t.exec(insertFamily, p.ID, p.created, p.Owner, p.Dialect, titleOf(p.In)); err != nil {
		return false, err
	}
	n, err := t.exec(insertFirst, p.ID, p.Owner, p.Model, string(p.Status), p.created, joined(p.blobs), p.body)
	return n == 1, err
}

func (p *put) next(t *tx) (inserted bool, err error) {
	found, err := t.row(growFamily, []any{p.Parent, p.Owner, p.created}, &p.family)
	if err != nil || !found {
		return false, err
	}
	n, err := t.exec(insertNext, p.ID, p.Parent, p.Owner, p.Model, string(p.Status), p.created, joined(p.blobs), p.body, MaxDepth-1)
	return n == 1, err
}

// storedTurn is a row of the turns.
type storedTurn struct {
	Turn

	created int64
	hidden  bool
	body    []byte
}

func selectStored(t *tx, id string) (there storedTurn, found bool, err error) {
	found, err = t.row(selectSame, []any{id}, &there.Parent, &there.Family, &there.Owner, &there.Model, &there.Status,
		&there.created, &there.hidden, &there.body)
	return there, found, err
}

// hindrance returns the reason why the turn wasn't inserted. It never returns nil, since the transaction must be rolled back.
func (p *put) hindrance(t *tx) error {
	there, found, err := selectStored(t, p.ID)
	switch {
	case err != nil:
		return err
	case found && !there.hidden && there.Parent == p.Parent && there.Owner == p.Owner && there.Model == p.Model &&
		there.Status == p.Status && bytes.Equal(there.body, p.body):
		return &already{there.Family, there.created}
	case found:
		return &Exists{ID: p.ID}
	}
	var depth int
	found, err = t.row(selectDepth, []any{p.Parent, p.Owner}, &depth)
	switch {
	case err != nil:
		return err
	case found && depth >= MaxDepth-1:
		return &TooDeep{Parent: p.Parent}
	}
	return &NotFound{ID: p.Parent}
}
