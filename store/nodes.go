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
func (s *Store) Beat(ctx context.Context, n *Node, forget time.Duration) ([]Node, error) {
	err := s.write(ctx, 0, func(t *tx) error {
		leaving := 0
		if n.Leaving {
			leaving = 1
		}
		if _, err := t.exec(s.timed(beatNode), n.Name, n.Boot, n.Address, n.Key, n.Version, n.About, leaving); err != nil {
			return err
		}
		_, err := t.exec(s.timed(deleteOldNodes), forget.Nanoseconds())
		return err
	})
	if err != nil {
		return nil, err
	}
	return s.Nodes(ctx)
}

// Leave deletes the row of a server that has ended, unless another start of it has written it.
func (s *Store) Leave(ctx context.Context, name, boot string) error {
	return s.write(ctx, 0, func(t *tx) error {
		_, err := t.exec(deleteNode, name, boot)
		return err
	})
}

// Nodes returns the servers of the cluster, by name.
func (s *Store) Nodes(ctx context.Context) ([]Node, error) {
	var all []Node
	err := s.read(ctx, func(q querier) error {
		all = nil
		return each(ctx, q, s.timed(selectNodes), nil, func(scan func(...any) error) error {
			var n Node
			var leaving int
			var started, age int64
			if err := scan(&n.Name, &n.Boot, &n.Address, &n.Key, &n.Version, &n.About, &leaving, &started, &age); err != nil {
				return err
			}
			n.Leaving, n.Started, n.Age = leaving != 0, moment(started), time.Duration(age)
			all = append(all, n)
			return nil
		})
	})
	return all, err
}
