package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

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
