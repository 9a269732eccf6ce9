package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

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

// SchemaOf returns the version of the schema of a SQLite database, after a check that the file is whole. No other process may use
// the file.
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
