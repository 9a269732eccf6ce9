package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	postgresWriters = 8  // concurrent transactions; the server groups their commits
	postgresConns   = 16 // the rest is for reads
	// postgresPause is the pause before a retry, for the server to come back.
	postgresPause = 200 * time.Millisecond
	// migrationLock is the number of an advisory lock, chosen not to collide with other programs.
	migrationLock = 0x6c6d63616464 // "lmcadd"
)

type postgres struct {
	db      *sql.DB
	config  *pgx.ConnConfig
	address string // without the password
	silence silence
}

func openPostgres(ctx context.Context, address string, log *slog.Logger) (*postgres, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("the store's PostgreSQL URL: %w. It looks like postgres://user:password@host:5432/database", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "lmcaddy"
	}
	config.DialFunc = dialPostgres
	p := &postgres{
		db:      stdlib.OpenDB(*config, stdlib.OptionAfterConnect(setUp)),
		config:  config,
		silence: silence{after: postgresSilence, within: probeTimeout},
		address: fmt.Sprintf("%s/%s", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), config.Database),
	}
	p.db.SetMaxOpenConns(postgresConns)
	p.db.SetMaxIdleConns(postgresConns)
	p.db.SetConnMaxIdleTime(5 * time.Minute)
	if err := p.check(ctx, log); err != nil {
		return nil, errors.Join(p.explain(err), p.db.Close())
	}
	return p, nil
}

// check connects to the server, and warns of settings that may lose data.
func (p *postgres) check(ctx context.Context, log *slog.Logger) error {
	for _, setting := range []string{"fsync", "synchronous_commit"} {
		var value string
		if _, err := p.reader(ctx).row(selectSetting, []any{setting}, &value); err != nil {
			return err
		}
		if value == "off" {
			log.Warn("PostgreSQL may lose what it has confirmed when it or its machine crashes: a setting of the server is off",
				"setting", setting, "store", p.address)
		}
	}
	return nil
}

// transact retries a transaction once if the connection broke or another transaction interfered. All writes of the store may be repeated.
func (p *postgres) transact(ctx context.Context, loose bool, do func(*tx) error) error {
	try := func(isFirst bool) error {
		return p.attempt(ctx, isFirst, func(ctx context.Context) error { return p.once(ctx, loose, do, !isFirst) })
	}
	err := try(true)
	if retry, dead := again(err); retry {
		p.rest(dead)
		err = try(false)
	}
	return p.explain(err)
}

func (p *postgres) once(ctx context.Context, loose bool, do func(*tx) error, again bool) error {
	began, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if loose { // then the commit doesn't wait for the server's disk
		if _, err := began.ExecContext(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
			_ = began.Rollback()
			return err
		}
	}
	if err := do(&tx{ctx: ctx, q: began, dialect: postgresDialect, again: again}); err != nil {
		_ = began.Rollback() // otherwise the server does it
		return err
	}
	return began.Commit()
}

func (p *postgres) read(ctx context.Context, do func(*tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.silence.after+p.patience())
	defer cancel()
	try := func(isFirst bool) error {
		return p.attempt(ctx, isFirst, func(ctx context.Context) error { return do(p.reader(ctx)) })
	}
	err := try(true)
	if retry, dead := again(err); retry && ctx.Err() == nil {
		p.rest(dead)
		err = try(false)
	}
	return err
}

// ping returns an error if the server doesn't answer, or can't be written to. Its connection isn't used again if it is found lost.
func (p *postgres) ping(ctx context.Context) error {
	var readOnly string
	_, err := p.reader(ctx).row(selectSetting, []any{"transaction_read_only"}, &readOnly)
	switch {
	case err != nil:
		p.closeIdle()
		return p.explain(err)
	case readOnly == "on":
		return unavailable{fmt.Errorf("the store at %s can only be read. %s", p.address, advice(readOnlyCode))}
	}
	return nil
}

// rest waits before a retry. If a connection died, it closes the idle ones, which belong to the same server.
func (p *postgres) rest(dead bool) {
	if !dead {
		return
	}
	p.closeIdle()
	time.Sleep(postgresPause)
}

func (p *postgres) closeIdle() {
	p.db.SetMaxIdleConns(0)
	p.db.SetMaxIdleConns(postgresConns)
}

// again reports whether a retry may help, and whether the connection is dead.
func again(err error) (retry, dead bool) {
	var refused *pgconn.PgError
	var unreachable *pgconn.ConnectError
	var lost *silent
	switch {
	case errors.As(err, &lost):
		return errors.Is(lost.reason, errNoAnswer), true // a new connection was tried otherwise
	case err == nil, isRefusal(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false, false
	case errors.As(err, &refused):
		switch code := refused.Code; {
		case code == "40001", code == "40P01", code == tooManyCode: // serialization failure, deadlock; one of our own may be free by now
			return true, false
		case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P0"), code == "25P03": // connection, shutdown or starting up, idle
			return true, true
		}
		return false, false
	case errors.As(err, &unreachable):
		return true, true
	}
	var network net.Error
	broken := errors.As(err, &network) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	return broken, broken
}

// The codes of errors that are more than once told apart.
const (
	readOnlyCode = "25006"
	tooManyCode  = "53300"
)

func (p *postgres) explain(err error) error {
	var refused *pgconn.PgError
	switch {
	case err == nil || isRefusal(err) || errors.Is(err, context.Canceled):
		return err
	case !errors.As(err, &refused):
		said := fmt.Errorf("the store at %s: %w. Look whether the server runs and can be reached from here", p.address, err)
		if _, isGone := again(err); isGone || errors.Is(err, context.DeadlineExceeded) {
			return unavailable{said}
		}
		return said
	case refused.Code == "53100":
		return fmt.Errorf("the store at %s: %w. %w", p.address, err, ErrFull)
	}
	said := fmt.Errorf("the store at %s: %w. %s", p.address, err, advice(refused.Code))
	if isMistake(refused.Code) {
		return said
	}
	return unavailable{said}
}

// isMistake reports whether a statement is wrong, and not the server's state. A table that is missing, or a right, isn't a mistake.
func isMistake(code string) bool {
	switch code[:min(2, len(code))] {
	case "0A", "22", "23", "54": // unsupported, data, constraint, a limit
		return true
	case "42":
		return code != "42501" && code != "42P01"
	}
	return false
}

// advice says what to do about a PostgreSQL error code.
func advice(code string) string {
	switch {
	case strings.HasPrefix(code, "28"):
		return "Look at the user and the password in the store's URL, and at the server's pg_hba.conf"
	case code == "3D000":
		return "Make the database with `createdb`, or name another one"
	case code == "42501" || code == "3F000":
		return "The user needs the right to make and change tables there: GRANT CREATE, USAGE ON SCHEMA"
	case code == tooManyCode:
		return fmt.Sprintf("The server has too few connections: lmcaddy takes up to %d", postgresConns)
	case code == readOnlyCode:
		return "The server is read-only, such as a standby: name the primary in the store's URL (target_session_attrs=read-write)"
	}
	return "The server's log says more"
}

func (p *postgres) group() int              { return 1 } // several jobs in one transaction could deadlock with others
func (p *postgres) writers() int            { return postgresWriters }
func (p *postgres) patience() time.Duration { return 30 * time.Second }
func (p *postgres) isLocked(error) bool     { return false } // the server queues locks
func (p *postgres) tidy() time.Duration     { return 0 }     // the server has autovacuum
func (p *postgres) name() string            { return p.address }
func (p *postgres) close() error            { return p.db.Close() }

func (p *postgres) lock(t *tx) error {
	_, err := t.exec("SELECT pg_advisory_xact_lock($1)", int64(migrationLock))
	return err
}

// postgresDialect has the words for placeholders. IDs are compared bytewise: that is faster, and a change of the system's collations
// can't corrupt an index.
var postgresDialect = strings.NewReplacer("{now}", "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000000)::BIGINT",
	"{lock}", " FOR UPDATE SKIP LOCKED", "{id}", `TEXT COLLATE "C"`, "{bytes}", "BYTEA", "{keyed}", "",
	"{in}", "strpos", "{text}", "convert_from(", "{/text}", ", 'UTF8')")

func (p *postgres) reader(ctx context.Context) *tx {
	return &tx{ctx: ctx, q: p.db, dialect: postgresDialect}
}

const selectSetting = "SELECT current_setting($1)"

const (
	// connectTimeout bounds how long a server may take to accept a connection, unless the URL says otherwise.
	connectTimeout = 5 * time.Second
	// unacknowledged is how long the other end may leave data unacknowledged before the system gives a connection up.
	unacknowledged = 6 * time.Second
	// idleTransaction is how long the server keeps the locks of a transaction whose client was lost.
	idleTransaction = "idle_in_transaction_session_timeout"
)

// keepAlive finds a connection dead whose other end has been gone for 16 seconds.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 2 * time.Second, Count: 3}

// dialPostgres connects like pgx, but loses a dead connection within seconds.
func dialPostgres(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive, Control: func(network, _ string, c syscall.RawConn) (err error) {
		if !strings.HasPrefix(network, "tcp") {
			return nil
		}
		// An error is no reason not to connect: the system may not have the option.
		return c.Control(func(fd uintptr) { _ = boundUnacknowledged(fd, unacknowledged) })
	}}
	return d.DialContext(ctx, network, address)
}

// setUp bounds what a connection's server keeps for it, unless the URL does. It isn't a parameter of the connection's start, which
// connection poolers refuse.
func setUp(ctx context.Context, conn *pgx.Conn) error {
	if _, isChosen := conn.Config().RuntimeParams[idleTransaction]; isChosen {
		return nil
	}
	_, err := conn.Exec(ctx, fmt.Sprintf("SET %s = %d", idleTransaction, postgresSilence.Milliseconds()))
	return err
}
