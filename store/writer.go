package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The bounds of a group of jobs that is committed as one transaction.
const (
	groupJobs  = 256
	groupBytes = 16 << 20
)

// job is a waiting write.
type job struct {
	ctx   context.Context
	by    time.Time // deadline if another program keeps the database locked
	size  int       // approximate size in bytes
	loose bool      // it need not outlive the machine, and costs no flush to disk
	run   func(*tx) error
	done  chan error
}

// do runs in the transaction, possibly more than once.
func (j *job) do(t *tx) error {
	if err := j.ctx.Err(); err != nil { // it may have ended while the group was being written
		return err
	}
	return j.run(t)
}

// write runs a function in a transaction of a writer. Once a writer has taken it, it runs to its end, so an error of ctx means
// that nothing was written. The function may run more than once; the last run counts. Even without a deadline, write waits no
// longer than the store's patience for a database that is locked or busy.
func (s *Store) write(ctx context.Context, size int, run func(*tx) error) error {
	return s.writeJob(&job{ctx: ctx, size: size, run: run})
}

// writeJob is write for a job without a deadline and a channel.
func (s *Store) writeJob(j *job) (err error) {
	ctx, begun := j.ctx, time.Now()
	defer func() { s.latency.write(begun, err); s.note(err) }()
	j.by, j.done = begun.Add(s.patience), make(chan error, 1)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(j.by) {
		j.by = deadline
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.queue <- j:
		return <-j.done
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.patience):
		return fmt.Errorf("the store %s was busy for %s with what came before: %w", s.db.name(), s.patience, ErrBusy)
	case <-s.closing:
		return ErrClosed
	}
}

// writer commits jobs until the store is closed, and tidies up after them.
func (s *Store) writer() {
	var group []*job
	tidying, isDue := time.NewTimer(tidyPause), true
	defer tidying.Stop()
	for {
		select {
		case <-s.closing:
			return
		case j := <-s.queue:
			group = s.gather(append(group[:0], j))
			s.commit(group)
			clear(group)
			if !isDue { // resetting a timer that is due would delay tidying under constant load
				tidying.Reset(tidyPause)
				isDue = true
			}
		case <-tidying.C:
			pause := s.db.tidy()
			if isDue = pause > 0; isDue {
				tidying.Reset(pause)
			}
		}
	}
}

// gather adds waiting jobs to a group.
func (s *Store) gather(group []*job) []*job {
	size := 0
	for _, j := range group {
		size += j.size
	}
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

// commit writes a group and sends the results. While another program keeps the database locked, jobs that arrive join the
// group, and those that can't wait any longer are answered.
func (s *Store) commit(group []*job) {
	results, err := s.attempt(group)
	for s.db.isLocked(err) {
		if group = s.gather(s.patient(group, err)); len(group) == 0 {
			return
		}
		results, err = s.attempt(group)
	}
	if err != nil && len(group) > 1 { // one job may be the cause, such as a large one on an almost full disk
		for i := range group {
			s.commit(group[i : i+1 : i+1])
		}
		return
	}
	for i, j := range group {
		j.done <- cmp.Or(err, s.db.explain(results[i]))
	}
}

// attempt runs a group as one transaction. It returns the error of the transaction, or else the result of each job.
func (s *Store) attempt(group []*job) (results []error, err error) {
	ctx, cancel := context.WithDeadline(context.Background(), group[0].by)
	defer cancel()
	results = make([]error, len(group))
	if len(group) == 1 { // no savepoint needed
		return results, s.db.transact(ctx, group[0].loose, group[0].do)
	}
	loose := !slices.ContainsFunc(group, func(j *job) bool { return !j.loose })
	return results, s.db.transact(ctx, loose, func(t *tx) (fatal error) {
		for i, j := range group {
			if results[i], fatal = t.attempt(j.do); fatal != nil {
				return fatal
			}
		}
		return nil
	})
}

// patient returns the jobs of a group that can wait longer, and answers the others.
func (s *Store) patient(group []*job, err error) []*job {
	var left []*job
	for _, j := range group {
		switch {
		case s.isClosed():
			j.done <- ErrClosed
		case errors.Is(j.ctx.Err(), context.Canceled):
			j.done <- j.ctx.Err()
		case j.ctx.Err() != nil, time.Now().After(j.by):
			j.done <- err
		default:
			left = append(left, j)
		}
	}
	return left
}
