package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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

// writer has the queue of a store's writes, and the goroutines that commit them.
type writer struct {
	db       database
	patience time.Duration // the longest wait of a job
	queue    chan *job
	closing  chan struct{}
	running  sync.WaitGroup
}

// close completes the current writes. Waiting ones get ErrClosed.
func (w *writer) close() {
	close(w.closing)
	w.running.Wait()
}

func (w *writer) isClosed() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// write carries out a job. Once a writer has taken it, it runs to its end, so an error of its context means that nothing was written.
func (w *writer) write(j *job) error {
	j.by, j.done = time.Now().Add(w.patience), make(chan error, 1)
	if deadline, ok := j.ctx.Deadline(); ok && deadline.Before(j.by) {
		j.by = deadline
	}
	if err := j.ctx.Err(); err != nil {
		return err
	}
	select {
	case w.queue <- j:
		return <-j.done
	case <-j.ctx.Done():
		return j.ctx.Err()
	case <-time.After(w.patience):
		return fmt.Errorf("the store %s was busy for %s with what came before: %w", w.db.name(), w.patience, ErrBusy)
	case <-w.closing:
		return ErrClosed
	}
}

// run commits jobs until the store is closed, and tidies up after them.
func (w *writer) run() {
	var group []*job
	tidying, isDue := time.NewTimer(tidyPause), true
	defer tidying.Stop()
	for {
		select {
		case <-w.closing:
			return
		case j := <-w.queue:
			group = w.gather(append(group[:0], j))
			w.commit(group)
			clear(group)
			if !isDue { // resetting a timer that is due would delay tidying under constant load
				tidying.Reset(tidyPause)
				isDue = true
			}
		case <-tidying.C:
			pause := w.db.tidy()
			if isDue = pause > 0; isDue {
				tidying.Reset(pause)
			}
		}
	}
}

func (w *writer) gather(group []*job) []*job {
	size := 0
	for _, j := range group {
		size += j.size
	}
	for len(group) < w.db.group() && size < groupBytes {
		select {
		case j := <-w.queue:
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
func (w *writer) commit(group []*job) {
	results, err := w.attempt(group)
	for w.db.isLocked(err) {
		if group = w.gather(w.patient(group, err)); len(group) == 0 {
			return
		}
		results, err = w.attempt(group)
	}
	if err != nil && len(group) > 1 { // one job may be the cause, such as a large one on an almost full disk
		for i := range group {
			w.commit(group[i : i+1 : i+1])
		}
		return
	}
	for i, j := range group {
		j.done <- cmp.Or(err, w.db.explain(results[i]))
	}
}

// attempt runs a group as one transaction. It returns the error of the transaction, or else the result of each job.
func (w *writer) attempt(group []*job) (results []error, err error) {
	ctx, cancel := context.WithDeadline(context.Background(), group[0].by)
	defer cancel()
	results = make([]error, len(group))
	if len(group) == 1 { // no savepoint needed
		return results, w.db.transact(ctx, group[0].loose, group[0].do)
	}
	loose := !slices.ContainsFunc(group, func(j *job) bool { return !j.loose })
	return results, w.db.transact(ctx, loose, func(t *tx) (fatal error) {
		for i, j := range group {
			if results[i], fatal = t.attempt(j.do); fatal != nil {
				return fatal
			}
		}
		return nil
	})
}

// patient returns the jobs of a group that can wait longer, and answers the others.
func (w *writer) patient(group []*job, err error) []*job {
	return slices.DeleteFunc(slices.Clone(group), func(j *job) bool {
		switch {
		case w.isClosed():
			j.done <- ErrClosed
		case errors.Is(j.ctx.Err(), context.Canceled):
			j.done <- j.ctx.Err()
		case j.ctx.Err() != nil, time.Now().After(j.by):
			j.done <- err
		default:
			return false
		}
		return true
	})
}
