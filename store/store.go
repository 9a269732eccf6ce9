// Package store holds what must survive the process: conversations, tokens and usage. It uses a SQLite file, or a PostgreSQL
// database that several servers may share. Both have the same schema and behave the same.
//
// A request and its answer are a [Turn]. Turns form trees: each turn but the first of a conversation names its parent, and
// turns with the same parent are branches. A tree is called a family.
//
// # Durability
//
// When [Store.Put] returns nil, the turn is on disk. It survives crashes of the program and of the machine, and power
// failures, provided that the disk keeps what it has confirmed. A turn is stored as a whole or not at all. SQLite does this by
// write-ahead logging with synchronous=FULL, with one fsync for each group of waiting turns. For PostgreSQL it depends on the
// server's settings: Open warns if fsync or synchronous_commit is off.
//
// # Deletion
//
// Shortly after [Store.Delete] and [Store.Prune], deleted data is gone from SQLite's files: it is overwritten, the write-ahead
// log is truncated, and the file shrinks. The text of a turn that others continue remains until the last of these is deleted.
// With PostgreSQL, the server's autovacuum reclaims the space.
//
// # Turns in progress
//
// A turn whose answer takes long can be stored before it is complete, with the status [InProgress], and is replaced at its end by
// [Store.Finish]. The server that makes the answer calls [Store.Renew] from time to time. What a crashed server leaves becomes
// [Failed] by [Store.FailUnfinished], which any server of the store may call.
//
// # Writers
//
// All writes go through writers, which are goroutines of the Store. SQLite has one, which commits all waiting writes in one transaction.
// PostgreSQL has several, since it groups commits itself. Reads use connections of their own and don't wait for writes.
//
// # Locks
//
// A PostgreSQL transaction locks rows of unfinished first, then those of families, then those of blobs in the order of their hashes,
// then a counter. A change of a family requires the lock of its row, so no turn can be added below one that is being deleted.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
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
	*connection
	tokens
	usages
	nodes

	pruned func([]string)
}

// connection runs reads and writes on a database.
type connection struct {
	db     database
	writer *writer
	health health
	close  func() error
}

// database is what differs between SQLite and PostgreSQL.
type database interface {
	// transact runs do in a transaction, and commits it if do returns nil. do may run twice. ctx bounds slow operations. A loose
	// transaction outlives this process, but perhaps not the machine; a later one that isn't loose makes it as durable as itself.
	transact(ctx context.Context, loose bool, do func(*tx) error) error
	// read runs a function that reads, possibly twice.
	read(ctx context.Context, do func(*tx) error) error
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
	c := connect(db)
	return &Store{connection: c, tokens: tokens{c}, usages: usages{c}, nodes: nodes{c}, pruned: o.Pruned}, nil
}

// connect starts the writers.
func connect(db database) *connection {
	w := &writer{db: db, patience: db.patience(), queue: make(chan *job), closing: make(chan struct{})}
	for range db.writers() {
		w.running.Go(w.run)
	}
	c := &connection{db: db, writer: w}
	c.health.latency, c.health.failureFor = NewLatency(), failureFor
	c.close = sync.OnceValue(func() error {
		w.close()
		if err := db.close(); err != nil {
			return fmt.Errorf("closing the store %s: %w", db.name(), err)
		}
		return nil
	})
	return c
}

// Close completes the current writes and closes the store. Waiting writes get ErrClosed. It may be called more than once.
func (s *connection) Close() error { return s.close() }

// read runs a function that reads, possibly twice, and returns the error for the caller.
func (s *connection) read(ctx context.Context, do func(*tx) error) (err error) {
	begun := time.Now()
	defer func() { s.health.observe(false, begun, err) }()
	err = s.db.read(ctx, do)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err() // drivers wrap it in various ways
	case s.writer.isClosed():
		return ErrClosed
	}
	return s.db.explain(err)
}

// write runs a function in a transaction, whose approximate size is given in bytes. An error of ctx means that nothing was written. The
// function may run more than once; the last run counts. Even without a deadline, write waits no longer than the database's patience.
func (s *connection) write(ctx context.Context, size int, run func(*tx) error) error {
	return s.do(&job{ctx: ctx, size: size, run: run})
}

// exec writes by a single statement.
func (s *connection) exec(ctx context.Context, query string, args ...any) error {
	return s.write(ctx, 0, func(t *tx) error {
		_, err := t.exec(query, args...)
		return err
	})
}

// list returns the rows that a query finds, each scanned by a function.
func list[T any](
	ctx context.Context, s *connection, query string, args []any, scan func(*T, func(...any) error) error,
) (all []T, err error) {
	err = s.read(ctx, func(t *tx) (err error) {
		all, err = collect(t, query, args, scan)
		return err
	})
	return all, err
}

// do is write for a job without a deadline and a channel.
func (s *connection) do(j *job) (err error) {
	begun := time.Now()
	defer func() { s.health.observe(true, begun, err) }()
	return s.writer.write(j)
}

// ErrClosed is returned by every method after Close.
var ErrClosed = errors.New("the store is closed")

// ErrFull is wrapped by errors of writes that failed because the disk is full.
var ErrFull = errors.New("The disk is full: make room, or bound the age and number of the conversations that are kept")

// ErrUnavailable is wrapped by errors of a database that can't be used: it can't be reached, refuses what is asked, such as a standby that
// refuses writes, or is damaged.
var ErrUnavailable = errors.New("the database is unavailable")

// unavailable adds ErrUnavailable to an error without changing its text.
type unavailable struct{ error }

func (e unavailable) Unwrap() []error { return []error{e.error, ErrUnavailable} }

// ErrBusy is wrapped by errors of operations that timed out, because another program kept the database locked or because too
// many writes were waiting.
var ErrBusy = errors.New("the store is busy")

// errNotGrown wraps ErrFull where a quota or a limit of this process may be exhausted.
var errNotGrown = fmt.Errorf("Its file can't be written: the user's quota or the process's limit of a file's size (ulimit -f, LimitFSIZE) "+
	"may be reached, or the disk may be failing, of which the system's log says more. %w", ErrFull)

// NotFound says that the owner has no turn with the ID. It doesn't tell whether the turn was never stored, was deleted or
// belongs to another owner.
type NotFound struct{ ID string }

func (e *NotFound) Error() string { return fmt.Sprintf("no stored response has the id %q", e.ID) }

// Exists says that another turn has the ID.
type Exists struct{ ID string }

func (e *Exists) Error() string {
	return fmt.Sprintf("another response with the id %q is stored already", e.ID)
}

// TooDeep says that the conversation has MaxDepth turns.
type TooDeep struct{ Parent string }

func (e *TooDeep) Error() string {
	return fmt.Sprintf("the conversation that ends with %q has %d turns, and can't have more: begin a new one", e.Parent, MaxDepth)
}

// Invalid says that a turn can't be stored, through a fault of the caller.
type Invalid struct{ ID, Reason string }

func (e *Invalid) Error() string { return fmt.Sprintf("storing response %q: %s", e.ID, e.Reason) }

// Newer says that the schema was changed by a newer program.
type Newer struct {
	Store          string // path, or address without password
	Version, Known int    // version of the schema, and the highest known
}

func (e *Newer) Error() string {
	return fmt.Sprintf("the store %s has schema version %d, and this lmcaddy knows versions up to %d: a newer lmcaddy has written it. "+
		"Run that one or a newer one, or give this one another store", e.Store, e.Version, e.Known)
}

// already says that exactly this turn is stored. It isn't returned from the package.
type already struct {
	family  string
	created int64
}

func (*already) Error() string { return "the response is stored already" }

// isRefusal reports whether err is about the request and not about the database.
func isRefusal(err error) bool {
	switch err.(type) { //nolint:errorlint // never wrapped within the package
	case *NotFound, *NoConversation, *Exists, *TooDeep, *Invalid, *Newer, *already:
		return true
	}
	return false
}

// possible reports whether a database can store s as an ID. IDs come from clients, and PostgreSQL rejects some of them with an error.
func possible(s string) bool { return s != "" && utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
