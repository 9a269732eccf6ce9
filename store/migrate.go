package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// migrations are numbered from 1 in the order of their names. A released migration must not be changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

const selectSchema = "SELECT coalesce(max(version), 0) FROM lmcaddy_schema"

// migrate updates the schema in one transaction, so a crash leaves it unchanged. If several processes open a store at the same
// time, one of them updates it.
func migrate(ctx context.Context, db database) error {
	scripts, err := scripts(migrations)
	if err != nil {
		return err
	}
	for by := time.Now().Add(db.patience()); ; {
		err := migrateTo(ctx, db, scripts)
		if !db.isLocked(err) || ctx.Err() != nil || time.Now().After(by) {
			return err
		}
	}
}

func scripts(files fs.FS) ([]string, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(names))
	for i, name := range names {
		if want := fmt.Sprintf("migrations/%04d_", i+1); !strings.HasPrefix(name, want) {
			return nil, fmt.Errorf("the migration %s should begin with %s", name, want)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	return texts, nil
}

func migrateTo(ctx context.Context, db database, scripts []string) error {
	return db.transact(ctx, false, func(t *tx) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		version, err := version(t, db)
		if err != nil {
			return err
		}
		if version > len(scripts) {
			return &Newer{Store: db.name(), Version: version, Known: len(scripts)}
		}
		for i, script := range scripts[version:] {
			if err := apply(t, script); err != nil {
				return fmt.Errorf("bringing the store %s to schema version %d: %w", db.name(), version+i+1, err)
			}
			_, err := t.exec("INSERT INTO lmcaddy_schema (version, applied) VALUES ($1, $2)", version+i+1, time.Now().UnixNano())
			if err != nil {
				return err
			}
		}
		// find out now whether the store can be written
		_, err = t.exec("UPDATE lmcaddy_schema SET applied = applied WHERE version = $1", version)
		return err
	})
}

// version returns the number of the last migration applied; 0 for a new store.
func version(t *tx, db database) (int, error) {
	if err := db.lock(t); err != nil {
		return 0, err
	}
	if _, err := t.exec("CREATE TABLE IF NOT EXISTS lmcaddy_schema (version INTEGER PRIMARY KEY, applied BIGINT NOT NULL)"); err != nil {
		return 0, err
	}
	var version int
	_, err := t.row(selectSchema, nil, &version)
	return version, err
}

// apply runs a script one statement at a time, since PostgreSQL can't prepare several at once.
func apply(t *tx, script string) error {
	var lines []string
	for line := range strings.Lines(script) {
		text, _, _ := strings.Cut(line, "--")
		lines = append(lines, text)
	}
	for statement := range strings.SplitSeq(strings.Join(lines, "\n"), ";") {
		if statement = strings.TrimSpace(statement); statement == "" {
			continue
		}
		if _, err := t.exec(statement); err != nil {
			return err
		}
	}
	return nil
}

// Check reads a SQLite file from one end to the other, and returns what is wrong with it. It changes nothing, and may be
// called while a Store has the file open. The error is or wraps [fs.ErrNotExist] if there is no file.
func Check(ctx context.Context, path string) (err error) {
	if path, err = filepath.Abs(path); err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return fmt.Errorf("the store %s: %w", path, err)
	}
	s := &sqliteFile{path: path}
	db, err := sql.Open("sqlite", s.uri("mode=ro", "busy_timeout(5000)", "query_only(1)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	problems, err := column[string](&tx{ctx: ctx, q: db, dialect: sqliteDialect}, "PRAGMA quick_check(5)")
	if err != nil {
		return s.explain(err)
	}
	if problems[0] != "ok" {
		return fmt.Errorf("the store %s is damaged: %s", path, strings.Join(problems, "; "))
	}
	return nil
}

// CheckPostgres connects to a PostgreSQL database, and returns why it can't be used. It changes nothing.
func CheckPostgres(ctx context.Context, address string) error {
	p, err := openPostgres(ctx, address, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return p.db.Close()
}

// Copy writes a consistent copy of the SQLite database at path to a new file, and returns the version of its schema. A server may
// be using the database. The copy has no deleted data in it. Only the caller's own folder is safe for the new file: it is made
// with the mode that the umask gives.
func Copy(ctx context.Context, path, into string) (schema int, err error) {
	if _, err := os.Stat(path); err != nil {
		return 0, err
	}
	from := &sqliteFile{path: path}
	db, err := sql.Open("sqlite", from.uri("mode=rw", "busy_timeout(10000)", "temp_store(FILE)"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "VACUUM INTO $1", into); err != nil {
		return 0, fmt.Errorf("copying the store: %w", from.explain(err))
	}
	return SchemaOf(ctx, into)
}

// SchemaOf returns the version of the schema of a SQLite database, after a check that the file is whole. No other process may use the file.
func SchemaOf(ctx context.Context, path string) (schema int, err error) {
	file := &sqliteFile{path: path}
	db, err := sql.Open("sqlite", file.uri("mode=ro&immutable=1"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return 0, file.explain(err)
	}
	if found != "ok" {
		return 0, fmt.Errorf("the database %s is damaged: %s", path, found)
	}
	if err := db.QueryRowContext(ctx, selectSchema).Scan(&schema); err != nil {
		return 0, file.explain(err)
	}
	return schema, nil
}

// Schema returns the newest version of the schema that this program knows.
func Schema() int {
	known, err := scripts(migrations)
	if err != nil {
		panic(err) // the program was built with wrong files
	}
	return len(known)
}
