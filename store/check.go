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
	rows, err := db.QueryContext(ctx, "PRAGMA quick_check(5)")
	if err != nil {
		return s.explain(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var problems []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return s.explain(err)
		}
		if line != "ok" {
			problems = append(problems, line)
		}
	}
	if err := rows.Err(); err != nil {
		return s.explain(err)
	}
	if len(problems) > 0 {
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
