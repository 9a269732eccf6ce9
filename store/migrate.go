package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// migrations are numbered from 1 in the order of their names. One that was released is never changed: another is added.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date, in one transaction: a crash leaves it as it was. Of several processes that open a
// store at the same time, one does it and the others find it done.
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

// scripts gives the text of each migration.
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
	return db.transact(ctx, func(t *tx) error {
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
			if err := apply(t, db.schema(script)); err != nil {
				return fmt.Errorf("bringing the store %s to schema version %d: %w", db.name(), version+i+1, err)
			}
			if _, err := t.exec("INSERT INTO lmcaddy_schema (version, applied) VALUES ($1, $2)", version+i+1, time.Now().UnixNano()); err != nil {
				return err
			}
		}
		// A store that can't be written is found out now, and not by the first who waits for it.
		_, err = t.exec("UPDATE lmcaddy_schema SET applied = applied WHERE version = $1", version)
		return err
	})
}

// version gives the number of the last migration that a store has had, 0 for a new one.
func version(t *tx, db database) (int, error) {
	if err := db.lock(t); err != nil {
		return 0, err
	}
	if _, err := t.exec("CREATE TABLE IF NOT EXISTS lmcaddy_schema (version INTEGER PRIMARY KEY, applied BIGINT NOT NULL)"); err != nil {
		return 0, err
	}
	var version int
	_, err := t.row("SELECT coalesce(max(version), 0) FROM lmcaddy_schema", nil, &version)
	return version, err
}

// apply runs a script one statement at a time: with PostgreSQL, one that is prepared can't be several.
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
