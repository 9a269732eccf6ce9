package store

import (
	"context"
	"database/sql"
	"errors"
)

// querier runs SQL on one connection, with statements that are prepared but once.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// tx is a transaction under way.
type tx struct {
	ctx  context.Context
	q    querier
	skip string // what keeps a SELECT from waiting for rows that another transaction has locked, and locks the rest
	// deletes is set by what removes something that is to be gone from the disk.
	deletes bool
	again   bool // what it does may have been done before: the connection broke
}

// exec runs a statement and gives the number of rows that it changed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	result, err := t.q.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row reads the only row that a query gives into dest, and says whether there was one.
func (t *tx) row(query string, args []any, dest ...any) (bool, error) {
	return one(t.ctx, t.q, query, args, dest...)
}

// each reads all rows of a query: next is called for each.
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
	defer func() { _ = rows.Close() }() // Err has what there is to know
	for rows.Next() {
		if err := next(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// attempt runs do so that the transaction can go on if it fails. When fatal isn't nil, it can't.
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
