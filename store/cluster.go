package store

import (
	"context"
	"time"
)

// Node is a server of a cluster, as it is listed in the store that they share.
type Node struct {
	Name    string
	Boot    string // changes with each start of the server
	Address string // where the others reach it
	Key     string // the key of their requests
	Version string
	About   string // what it tells of itself, as JSON
	Leaving bool   // it is shutting down
	Started time.Time
	Age     time.Duration // since it last wrote this, by the database's clock
}

// nodes is what the servers of a cluster have in common in a [Store].
type nodes struct{ *connection }

const (
	beatNode = `INSERT INTO nodes (name, boot, address, token, version, about, leaving, started, seen)
		VALUES ($1, $2, $3, $4, $5, $6, $7, {now}, {now})
		ON CONFLICT (name) DO UPDATE SET started = CASE WHEN nodes.boot = excluded.boot THEN nodes.started ELSE excluded.started END,
			boot = excluded.boot, address = excluded.address, token = excluded.token, version = excluded.version, about = excluded.about,
			leaving = excluded.leaving, seen = excluded.seen`

	deleteOldNodes = `DELETE FROM nodes WHERE seen < {now} - $1`

	deleteNode = `DELETE FROM nodes WHERE name = $1 AND boot = $2`

	selectNodes = `SELECT name, boot, address, token, version, about, leaving, started, {now} - seen FROM nodes ORDER BY name`
)

// Beat writes a server's row, and deletes those that were not written for longer than forget. It returns all rows that are left, by name.
func (s nodes) Beat(ctx context.Context, n *Node, forget time.Duration) ([]Node, error) {
	err := s.write(ctx, 0, func(t *tx) error {
		leaving := 0
		if n.Leaving {
			leaving = 1
		}
		if _, err := t.exec(beatNode, n.Name, n.Boot, n.Address, n.Key, n.Version, n.About, leaving); err != nil {
			return err
		}
		_, err := t.exec(deleteOldNodes, forget.Nanoseconds())
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.Nodes(ctx)
}

// Leave deletes the row of a server that has ended, unless another start of it has written it.
func (s nodes) Leave(ctx context.Context, name, boot string) error {
	return s.exec(ctx, deleteNode, name, boot)
}

// Nodes returns the servers of the cluster, by name.
func (s nodes) Nodes(ctx context.Context) ([]Node, error) {
	return list(ctx, s.connection, selectNodes, nil, func(n *Node, scan func(...any) error) error {
		var leaving int
		var started int64
		err := scan(&n.Name, &n.Boot, &n.Address, &n.Key, &n.Version, &n.About, &leaving, &started, &n.Age)
		n.Leaving, n.Started = leaving != 0, timeOf(started)
		return err
	})
}

const (
	// lockLimits returns an owner's row, which is locked until the transaction ends, and makes it if there is none.
	lockLimits = `INSERT INTO limits (owner, state, seen) VALUES ($1, '', {now})
		ON CONFLICT (owner) DO UPDATE SET seen = excluded.seen RETURNING state, seen`

	setLimits = `UPDATE limits SET state = $2 WHERE owner = $1`

	deleteOldLimits = `DELETE FROM limits WHERE seen < {now} - $1`
)

// ChangeLimits changes what the servers of a cluster have counted of an owner. change gets the state, which is empty at first, and the time
// by the database's clock, and returns the new state. It may run twice. If it returns an error, nothing changes, and ChangeLimits
// returns that error.
func (s nodes) ChangeLimits(ctx context.Context, owner string, change func(state string, now time.Time) (string, error)) error {
	var refusal error
	err := s.write(ctx, 0, func(t *tx) error {
		var state string
		var now int64
		if _, err := t.row(lockLimits, []any{owner}, &state, &now); err != nil {
			return err
		}
		var changed string
		if changed, refusal = change(state, timeOf(now)); refusal != nil {
			return nil
		}
		_, err := t.exec(setLimits, owner, changed)
		return err
	})
	if err != nil {
		return err
	}
	return refusal
}

// PruneLimits deletes what nobody has changed for some time.
func (s nodes) PruneLimits(ctx context.Context, kept time.Duration) error {
	return s.exec(ctx, deleteOldLimits, kept.Nanoseconds())
}
