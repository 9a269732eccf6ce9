package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

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
