package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"time"
)

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

// column returns a result of one column.
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
