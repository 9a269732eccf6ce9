package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Options say where a store is.
type Options struct {
	// Path is the SQLite file. It is made if it isn't there, with mode 0600, and so are the folders above it, with mode 0700.
	Path string
	// URL is a PostgreSQL database, postgres://user:password@host:port/database or what libpq understands. Either this or
	// Path is given. Its tables are made in the first schema of the search path.
	URL string
	// Log is told what an operator should know. nil: nobody is.
	Log *slog.Logger
}

// Store keeps conversations. Its methods may be called at the same time.
type Store struct {
	db       database
	patience time.Duration
	queue    chan *job
	closing  chan struct{}
	once     sync.Once
	writers  sync.WaitGroup
	closed   error
}

// database is what differs between SQLite and PostgreSQL.
type database interface {
	// transact runs a function in a transaction, and commits it unless it gives an error. The function may run twice. ctx
	// bounds what could last.
	transact(ctx context.Context, do func(*tx) error) error
	// read runs a function that reads, perhaps twice.
	read(ctx context.Context, do func(q querier) error) error
	// explain turns the database's errors into ones that say what to do. The store's own errors stay as they are.
	explain(err error) error
	// isLocked tells whether an error of transact is that another program keeps the database locked: nothing was written.
	isLocked(err error) bool
	// tidy does a piece of what is left to do after something was deleted, and tells when to go on; 0: that was all.
	tidy() (pause time.Duration)
	patience() time.Duration // how long a write waits at most; less if its context ends before
	group() int              // how many jobs at most are committed as one transaction
	writers() int            // how many transactions at most are run at the same time
	lock(*tx) error          // keeps other processes from migrating until the transaction ends
	schema(string) string    // a migration in its own SQL
	name() string            // for errors
	close() error
}

// Open opens a store, and makes it or brings its schema up to date. Its errors are sentences for the operator; a schema that is
// newer than the program is *[Newer]. ctx bounds the opening only.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var db database
	var err error
	switch {
	case (o.Path == "") == (o.URL == ""):
		return nil, errors.New("a store is either a file or a PostgreSQL URL: give one of them")
	case o.Path != "":
		db, err = openSQLite(ctx, o.Path, o.Log)
	default:
		db, err = openPostgres(ctx, o.URL, o.Log)
	}
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, db); err != nil {
		return nil, errors.Join(err, db.close())
	}
	return start(db), nil
}

// start runs the writers of a database that is ready.
func start(db database) *Store {
	s := &Store{db: db, patience: db.patience(), queue: make(chan *job), closing: make(chan struct{})}
	for range db.writers() {
		s.writers.Go(s.writer)
	}
	return s
}

// Close ends what is being written, and closes the store. What still waits gets ErrClosed. It may be called again.
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closing)
		s.writers.Wait()
		if err := s.db.close(); err != nil {
			s.closed = fmt.Errorf("closing the store %s: %w", s.db.name(), err)
		}
	})
	return s.closed
}

// read runs a function that reads, with the errors that a caller is to see.
func (s *Store) read(ctx context.Context, do func(q querier) error) error {
	err := s.db.read(ctx, do)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err() // whatever the driver calls it
	case s.isClosed():
		return ErrClosed
	}
	return s.db.explain(err)
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}
