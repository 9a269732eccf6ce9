package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
// Media must have Data. Their Hash is ignored.
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
	old := strings.Fields(images) // which it had before
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
