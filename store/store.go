package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options configures a store.
type Options struct {
	// Path is the SQLite file. It is created with mode 0600, and its folders with mode 0700.
	Path string
	// URL is a PostgreSQL database, postgres://user:password@host:port/database or in another form of libpq. Either URL or Path
	// must be set. The tables are created in the first schema of the search path.
	URL string
	// Log receives warnings for the operator. It may be nil.
	Log *slog.Logger
	// Pruned is told which conversations Prune has removed, by their first turns. It may be nil.
	Pruned func(families []string)
}

// Store is a database of conversations, tokens and usage. Its methods may be called from any goroutine.
type Store struct {
	db       database
	patience time.Duration
	pruned   func([]string)
	queue    chan *job
	closing  chan struct{}
	once     sync.Once
	writers  sync.WaitGroup
	closed   error
	latency  latency

	trouble     atomic.Pointer[trouble] // the last that an operation met; nil: none since the last Ping
	troubleKept time.Duration
}

// database is what differs between SQLite and PostgreSQL.
type database interface {
	// transact runs do in a transaction, and commits it if do returns nil. do may run twice. ctx bounds slow operations. A loose
	// transaction outlives this process, but perhaps not the machine; a later one that isn't loose makes it as durable as itself.
	transact(ctx context.Context, loose bool, do func(*tx) error) error
	// read runs a function that reads, possibly twice.
	read(ctx context.Context, do func(q querier) error) error
	// ping returns why the database can't be used, as far as can be found out without writing, explained.
	ping(ctx context.Context) error
	// explain adds what to do to the database's errors. It returns the store's own errors unchanged.
	explain(err error) error
	// isLocked reports whether transact failed because another program keeps the database locked. Nothing was written then.
	isLocked(err error) bool
	// tidy does some of the work that deletions leave, and returns the pause before the next call; 0 if nothing is left.
	tidy() (pause time.Duration)
	patience() time.Duration // the longest wait of a write, unless its context ends earlier
	group() int              // the most jobs in a transaction
	writers() int            // the most concurrent transactions
	lock(*tx) error          // prevents migrations by other processes until the transaction ends
	schema(string) string    // translates a migration to its SQL
	clock() string           // an SQL expression for the time, in nanoseconds since 1970
	name() string            // for messages
	close() error
}

// Open opens or creates a store, and migrates its schema. Its errors are for the operator; *[Newer] means that the schema is
// newer than the program. ctx applies to the opening only.
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
	s := start(db)
	s.pruned = o.Pruned
	return s, nil
}

// start starts the writers.
func start(db database) *Store {
	s := &Store{db: db, patience: db.patience(), queue: make(chan *job), closing: make(chan struct{}), latency: latency{Latency: NewLatency()}, troubleKept: troubleKept}
	for range db.writers() {
		s.writers.Go(s.writer)
	}
	return s
}

// Close completes the current writes and closes the store. Waiting writes get ErrClosed. It may be called more than once.
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

// read runs a function that reads, and returns the error for the caller.
func (s *Store) read(ctx context.Context, do func(q querier) error) (err error) {
	begun := time.Now()
	defer func() { s.latency.read(begun, err); s.note(err) }()
	err = s.db.read(ctx, do)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err() // drivers wrap it in various ways
	case s.isClosed():
		return ErrClosed
	}
	return s.db.explain(err)
}

// timed returns a query with the database's clock in place of {now}.
func (s *Store) timed(query string) string { return strings.ReplaceAll(query, "{now}", s.db.clock()) }

func (s *Store) isClosed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}
