package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
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
