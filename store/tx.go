package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// querier runs SQL, with cached prepared statements.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// tx is a running transaction.
type tx struct {
	ctx   context.Context
	q     querier
	clock string // an SQL expression for the database's time
	skip  string // suffix for SELECT that locks rows and skips those that are locked
	// deletes is set when data is deleted that must disappear from the disk.
	deletes bool
	again   bool // the connection broke, so the transaction may have been committed before
}

// exec runs a statement and returns the number of rows affected.
func (t *tx) exec(query string, args ...any) (int64, error) {
	result, err := t.q.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// timed returns a query with the database's clock in place of {now}.
func (t *tx) timed(query string) string { return strings.ReplaceAll(query, "{now}", t.clock) }

// row scans the only row of a result into dest, and reports whether there was one.
func (t *tx) row(query string, args []any, dest ...any) (bool, error) {
	return one(t.ctx, t.q, query, args, dest...)
}

// each calls next for each row of a result.
func (t *tx) each(query string, args []any, next func(scan func(...any) error) error) error {
	return each(t.ctx, t.q, query, args, next)
}

func one(ctx context.Context, q querier, query string, args []any, dest ...any) (found bool, err error) {
	err = each(ctx, q, query, args, func(scan func(...any) error) error {
		if found {
			return errors.New("more than one row where one was expected")
		}
		found = true
		return scan(dest...)
	})
	return found, err
}

func each(ctx context.Context, q querier, query string, args []any, next func(scan func(...any) error) error) error {
	rows, err := q.QueryContext(ctx, query, args...)
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
