package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// querier runs SQL, with cached prepared statements.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// tx is a running transaction, or a read.
type tx struct {
	ctx context.Context
	q   querier
	// dialect has the database's own words for the placeholders in statements, such as {now}, the time in nanoseconds since 1970.
	dialect *strings.Replacer
	// deletes is set when data is deleted that must disappear from the disk.
	deletes bool
	again   bool // the connection broke, so the transaction may have been committed before
}

// exec runs a statement and returns the number of rows affected.
func (t *tx) exec(query string, args ...any) (int64, error) {
	result, err := t.q.ExecContext(t.ctx, t.dialect.Replace(query), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row scans the only row of a result into dest, and reports whether there was one.
func (t *tx) row(query string, args []any, dest ...any) (found bool, err error) {
	err = t.each(query, args, func(scan func(...any) error) error {
		if found {
			return errors.New("more than one row where one was expected")
		}
		found = true
		return scan(dest...)
	})
	return found, err
}

// each calls next for each row of a result.
func (t *tx) each(query string, args []any, next func(scan func(...any) error) error) error {
	rows, err := t.q.QueryContext(t.ctx, t.dialect.Replace(query), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has the error
	for rows.Next() {
		if err := next(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// collect returns the rows of a result, each scanned by a function.
func collect[T any](t *tx, query string, args []any, scan func(row *T, scan func(...any) error) error) ([]T, error) {
	var all []T
	err := t.each(query, args, func(from func(...any) error) error {
		var row T
		err := scan(&row, from)
		all = append(all, row)
		return err
	})
	return all, err
}

func column[T any](t *tx, query string, args ...any) ([]T, error) {
	return collect(t, query, args, func(value *T, scan func(...any) error) error { return scan(value) })
}

// attempt runs do such that the transaction can continue if do fails. It can't continue if fatal is not nil.
func (t *tx) attempt(do func(*tx) error) (err, fatal error) {
	if _, err := t.exec("SAVEPOINT turn"); err != nil {
		return nil, err
	}
	if err = do(t); err != nil {
		if _, fatal := t.exec("ROLLBACK TO turn"); fatal != nil {
			return nil, fatal
		}
	}
	_, fatal = t.exec("RELEASE turn")
	return err, fatal
}

// session caches prepared statements, since SQLite's driver would compile each query again.
type session struct {
	prepare    func(context.Context, string) (*sql.Stmt, error)
	mu         sync.RWMutex
	statements map[string]*sql.Stmt
}

func (s *session) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	statement, err := s.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.ExecContext(ctx, args...)
}

func (s *session) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	statement, err := s.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, args...)
}

// statement returns a prepared query. All queries are constants, so there are few.
func (s *session) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.RLock()
	known := s.statements[query]
	s.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.statements[query]; known != nil {
		return known, nil
	}
	statement, err := s.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	s.statements[query] = statement
	return statement, nil
}

func (s *session) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, statement := range s.statements {
		errs = append(errs, statement.Close())
	}
	clear(s.statements)
	return errors.Join(errs...)
}

// nanoseconds returns the nanoseconds since 1970; 0 for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOf(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}
