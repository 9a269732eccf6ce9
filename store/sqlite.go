package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// sqliteReaders is the number of reading connections. More wouldn't read faster from one disk.
const sqliteReaders = 4

// The page caches of connections, in KiB. They fill up as the store grows, and are never released. The system caches the file
// as well, so larger ones help little.
const (
	writerCache = "cache_size(-2048)"
	readerCache = "cache_size(-1024)"
)

// sqlitePatience is how long a statement waits for a lock of another program, and a checkpoint for readers of old data. It is
// short, so that writes that can't wait any longer are answered in between.
const sqlitePatience = "PRAGMA busy_timeout = 100"

// The first connection switches a new file to write-ahead logging. Meanwhile SQLite refuses other connections at once,
// whatever their busy timeout, so they retry.
const (
	openPatience = 10 * time.Second
	openPause    = 10 * time.Millisecond
)

// sqliteFile is a SQLite database, with one connection for writes and a pool for reads.
type sqliteFile struct {
	path    string
	writing *sql.DB // has one connection
	conn    *sql.Conn
	session *session
	reading *sql.DB
	reader  *session

	returnsPages bool // empty pages can be returned to the disk
	untidy       bool // deleted data may still be in the files
	loose        bool // commits aren't flushed to disk now

	opened map[string]fs.FileInfo // the files that are open, by path
	damage atomic.Pointer[error]  // the first that was found
}

func openSQLite(ctx context.Context, path string, log *slog.Logger) (*sqliteFile, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		err = makeFile(ctx, path, log)
	}
	if _, isSystems := errors.AsType[*fs.PathError](err); isSystems {
		err = fmt.Errorf("%w. Name a file in a folder that lmcaddy may write to", err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the store %s: %w", path, err)
	}
	for by := time.Now().Add(openPatience); ; {
		s := &sqliteFile{path: path, untidy: true} // the last process may have been killed before tidying
		err := s.begin(ctx)
		if err == nil {
			return s, nil
		}
		wasLocked := s.isLocked(err)
		err = errors.Join(s.explain(err), s.close())
		if !wasLocked || ctx.Err() != nil || time.Now().After(by) {
			return nil, err
		}
		time.Sleep(openPause)
	}
}

// begin connects to the file and prepares it. Its error is SQLite's.
func (s *sqliteFile) begin(ctx context.Context) error {
	if err := s.connect(ctx, "mode=rw"); err != nil {
		return err
	}
	const incremental = 2
	var vacuum int
	t := &tx{ctx: ctx, q: s.session, dialect: sqliteDialect}
	if _, err := t.row("PRAGMA auto_vacuum", nil, &vacuum); err != nil {
		return err
	}
	s.returnsPages = vacuum == incremental // else it wasn't made here
	s.identify()
	_, err := s.conn.ExecContext(ctx, sqlitePatience)
	return err
}

// connect opens the connections, all of them now: the path may lead to another file later. access is added to the URI; tests use mode=ro.
func (s *sqliteFile) connect(ctx context.Context, access string) (err error) {
	// fullfsync: on macOS, fsync leaves data in the disk's cache.
	uri := s.uri(access, "busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "fullfsync(1)", "checkpoint_fullfsync(1)",
		"journal_size_limit(67108864)", writerCache, "temp_store(MEMORY)", "auto_vacuum(INCREMENTAL)", "secure_delete(ON)")
	if s.writing, err = sql.Open("sqlite", uri); err != nil {
		return err
	}
	s.writing.SetMaxOpenConns(1)
	if s.conn, err = s.writing.Conn(ctx); err != nil {
		return err
	}
	s.session = &session{prepare: s.conn.PrepareContext, statements: map[string]*sql.Stmt{}}
	uri = s.uri(access, "busy_timeout(5000)", "query_only(1)", readerCache, "temp_store(MEMORY)")
	if s.reading, err = sql.Open("sqlite", uri); err != nil {
		return err
	}
	s.reading.SetMaxOpenConns(sqliteReaders)
	s.reading.SetMaxIdleConns(sqliteReaders)
	if err := openAll(ctx, s.reading, sqliteReaders); err != nil {
		return err
	}
	s.reader = &session{prepare: s.reading.PrepareContext, statements: map[string]*sql.Stmt{}}
	return nil
}

// openAll opens a number of connections, which stay in the pool.
func openAll(ctx context.Context, db *sql.DB, number int) (err error) {
	for range number {
		conn, failed := db.Conn(ctx)
		if failed != nil {
			return errors.Join(err, failed)
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
	}
	return nil
}

func (s *sqliteFile) uri(access string, pragmas ...string) string {
	path := filepath.ToSlash(s.path)
	if !strings.HasPrefix(path, "/") { // it begins with a drive letter
		path = "/" + path
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": pragmas}.Encode()}
	if access != "" {
		u.RawQuery += "&" + access
	}
	return u.String()
}

// transact must not be called concurrently.
func (s *sqliteFile) transact(_ context.Context, loose bool, do func(*tx) error) error {
	if err := s.displaced(); err != nil {
		return err
	}
	// The write-ahead log has loose commits in the system's memory, which outlives the process, and the next commit that is flushed takes
	// them along. This pragma isn't a cached statement: SQLite carries it out while it compiles it.
	if s.loose != loose {
		pragma := "PRAGMA synchronous = FULL"
		if loose {
			pragma = "PRAGMA synchronous = NORMAL"
		}
		if _, err := s.conn.ExecContext(context.Background(), pragma); err != nil {
			return s.explain(err)
		}
		s.loose = loose
	}
	// For a context that can be canceled, the driver starts a goroutine for each statement. These statements are short.
	t := &tx{ctx: context.Background(), q: s.session, dialect: sqliteDialect}
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return s.explain(err)
	}
	err := do(t)
	if err == nil {
		if _, err = t.exec("COMMIT"); err == nil {
			if t.deletes {
				s.untidy = true
			}
			return nil
		}
	}
	_, _ = t.exec("ROLLBACK") // fails if SQLite has done it
	return s.explain(err)
}

func (s *sqliteFile) read(ctx context.Context, do func(*tx) error) error {
	return do(&tx{ctx: ctx, q: s.reader, dialect: sqliteDialect})
}

func (s *sqliteFile) isLocked(err error) bool {
	failure, ok := errors.AsType[*sqlite.Error](err)
	return ok && failure.Code()&0xff == lib.SQLITE_BUSY
}

// explain adds what to do about an error of SQLite.
func (s *sqliteFile) explain(err error) error {
	var failure *sqlite.Error
	if err == nil || isRefusal(err) || !errors.As(err, &failure) {
		return err
	}
	if code := failure.Code() & 0xff; code == lib.SQLITE_CANTOPEN || code == lib.SQLITE_IOERR { // SQLite hides the cause
		if exhausted := openfiles.Check(); exhausted != nil {
			return fmt.Errorf("the store %s: %w: %w", s.path, err, exhausted)
		}
	}
	if displaced := s.displaced(); displaced != nil {
		return displaced // why SQLite found nothing, or something else
	}
	switch failure.Code() {
	case lib.SQLITE_IOERR_WRITE, lib.SQLITE_IOERR_SHMSIZE: // SQLite reports SQLITE_FULL only for ENOSPC
		return fmt.Errorf("the store %s: %w. %w", s.path, err, errNotGrown)
	}
	var advice string
	switch failure.Code() & 0xff { // the high bits are details
	case lib.SQLITE_NOTADB:
		advice = "The file is no SQLite database, or its beginning is damaged. Move it away to begin with an empty store, or put a " +
			"backup in its place"
	case lib.SQLITE_CORRUPT:
		advice = "The database is damaged. Stop lmcaddy, then put a backup in its place, or save what can be read with " +
			"`sqlite3 FILE .recover`"
	case lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_CANTOPEN, lib.SQLITE_AUTH:
		advice = "lmcaddy must be able to write the file and to make others beside it: look at the owner and the mode of both the file " +
			"and its folder"
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return fmt.Errorf("the store %s: %w: %w. Another program keeps the database locked: end it, such as an open sqlite3 shell or a "+
			"backup",
			s.path, ErrBusy, err)
	case lib.SQLITE_FULL:
		return fmt.Errorf("the store %s: %w. %w", s.path, err, ErrFull)
	case lib.SQLITE_IOERR:
		advice = "The disk didn't do what it should: look at the system's log. Network drives are no place for this file"
	default:
		return fmt.Errorf("the store %s: %w", s.path, err)
	}
	var said error = unavailable{fmt.Errorf("the store %s: %w. %s", s.path, err, advice)}
	if code := failure.Code() & 0xff; code == lib.SQLITE_CORRUPT || code == lib.SQLITE_NOTADB {
		s.damage.CompareAndSwap(nil, &said)
	}
	return said
}

// ping returns what is wrong with the files. Pages that are damaged were found by an earlier operation.
func (s *sqliteFile) ping(ctx context.Context) error {
	if err := s.displaced(); err != nil {
		return err
	}
	if found := s.damage.Load(); found != nil {
		return *found
	}
	return s.explain(s.read(ctx, func(t *tx) error {
		_, err := t.row(selectSchema, nil, new(int))
		return err
	}))
}

func (s *sqliteFile) patience() time.Duration { return 10 * time.Second }
func (s *sqliteFile) group() int              { return groupJobs }
func (s *sqliteFile) writers() int            { return 1 }
func (s *sqliteFile) lock(*tx) error          { return nil } // BEGIN IMMEDIATE locks
func (s *sqliteFile) name() string            { return s.path }

// sqliteDialect has the words for placeholders.
var sqliteDialect = strings.NewReplacer("{now}", "CAST(unixepoch('subsec') * 1000000000 AS INTEGER)", "{lock}", "",
	"{id}", "TEXT", "{bytes}", "BLOB", "{keyed}", " WITHOUT ROWID",
	"{in}", "instr", "{text}", "CAST(", "{/text}", " AS TEXT)")

// close closes the connections. The last one moves the write-ahead log into the file.
func (s *sqliteFile) close() error {
	var errs []error
	for _, each := range []*session{s.reader, s.session} {
		if each != nil {
			errs = append(errs, each.close())
		}
	}
	if s.reading != nil {
		errs = append(errs, s.reading.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.writing != nil {
		errs = append(errs, s.writing.Close())
	}
	return errors.Join(errs...)
}

// walSuffix ends the name of a database's write-ahead log.
const walSuffix = "-wal"

// makeFile makes a database that only its owner can read, unless there is one. SQLite's other files get the same mode. It doesn't open an
// existing file, because closing it would release the locks that this process may hold on it.
func makeFile(ctx context.Context, path string, log *slog.Logger) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	wal, _ := os.Stat(path + walSuffix) // first: another process makes the file before its log
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && wal != nil && wal.Size() > 0:
		return errors.New("the file is gone, but its write-ahead log is there, which may have the last changes. Put the file back, " +
			"or move the files with the endings -wal and -shm away to begin with an empty store")
	case errors.Is(err, fs.ErrNotExist):
		return makeDatabase(ctx, path)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a file. Name a file in a folder that lmcaddy may write to")
	case info.Size() == 0:
		return errors.New("the file is empty, which no store is: something has emptied it. Put a backup in its place, or delete it " +
			"to begin with an empty store")
	case info.Mode().Perm()&0o077 != 0:
		log.Warn("users other than its owner can read the stored conversations: chmod 600 prevents that",
			"file", path, "mode", info.Mode().Perm().String())
	}
	return nil
}

// makeDatabase makes an empty database, which appears at path with its header: a file without one has lost its content.
func makeDatabase(ctx context.Context, path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := f.Close(); err != nil {
		return err
	}
	made := &sqliteFile{path: f.Name()}
	db, err := sql.Open("sqlite", made.uri("mode=rw", "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if err := errors.Join(db.PingContext(ctx), db.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), path)
	if err == nil || errors.Is(err, fs.ErrExist) { // another process was quicker
		return nil
	}
	return os.Rename(f.Name(), path) // there are no links on some file systems
}

func (s *sqliteFile) identify() {
	s.opened = map[string]fs.FileInfo{}
	for _, path := range []string{s.path, s.path + walSuffix} {
		if info, err := os.Stat(path); err == nil {
			s.opened[path] = info
		}
	}
}

// displaced returns why what is written isn't kept: the open files aren't those at the path any more.
func (s *sqliteFile) displaced() error {
	for path, opened := range s.opened {
		var what string
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			what = "was deleted"
		case err != nil: // which says nothing about the open file
			continue
		case !os.SameFile(opened, info):
			what = "was replaced"
		case path == s.path && info.Size() == 0:
			what = "was emptied"
		default:
			continue
		}
		return unavailable{fmt.Errorf("the store %s: the file %s %s while lmcaddy was using it, so nothing can be written. "+
			"Stop lmcaddy, put the file or a backup in its place, and start it again", s.path, filepath.Base(path), what)}
	}
	return nil
}
