package store

import (
	"context"
	"time"
)

// A group is committed as one transaction: so many jobs at most, and not many more bytes.
const (
	groupJobs  = 256
	groupBytes = 16 << 20
)

// patience bounds what is written to a database elsewhere, with what it may wait for a connection or for others' locks.
const patience = 30 * time.Second

// job is something to write.
type job struct {
	ctx  context.Context
	size int // in bytes, about
	run  func(*tx) error
	done chan error
}

// do is what runs in the transaction, perhaps more than once.
func (j *job) do(t *tx) error {
	if err := j.ctx.Err(); err != nil { // the group took long to come to it
		return err
	}
	return j.run(t)
}

// write has a writer run a function in a transaction. Once a writer has taken it, it runs to its end: then ctx's error means that nothing
// was written. The function may run more than once, the last time counts.
func (s *Store) write(ctx context.Context, size int, run func(*tx) error) error {
	j := &job{ctx: ctx, size: size, run: run, done: make(chan error, 1)}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.queue <- j:
		return <-j.done
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return ErrClosed
	}
}

// writer commits what comes, until the store is closed.
func (s *Store) writer() {
	var group []*job
	for {
		select {
		case <-s.closing:
			return
		case j := <-s.queue:
			group = s.gather(append(group[:0], j))
			s.commit(group)
			clear(group)
		}
	}
}

// gather adds to a group what waits already.
func (s *Store) gather(group []*job) []*job {
	size := group[0].size
	for len(group) < s.db.group() && size < groupBytes {
		select {
		case j := <-s.queue:
			group = append(group, j)
			size += j.size
		default:
			return group
		}
	}
	return group
}

// commit writes a group, and tells each of it what became of it.
func (s *Store) commit(group []*job) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if len(group) == 1 {
		group[0].done <- s.db.transact(ctx, group[0].do)
		return
	}
	results := make([]error, len(group))
	err := s.db.transact(ctx, func(t *tx) (fatal error) {
		for i, j := range group {
			if results[i], fatal = t.attempt(j.do); fatal != nil {
				return fatal
			}
		}
		return nil
	})
	if err != nil { // one may be to blame, such as by its size on a disk that is almost full
		for i := range group {
			s.commit(group[i : i+1])
		}
		return
	}
	for i, j := range group {
		j.done <- s.db.explain(results[i])
	}
}
