package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/dustin/go-humanize"
)

// Deleted data must disappear from the files, and its space must be returned to the disk. secure_delete=ON overwrites it in the
// database. Truncating the write-ahead log removes it there. Empty pages are cut off the end of the file, which requires that
// the database was created with auto_vacuum=INCREMENTAL.
const (
	// cutPages cuts off 1 MiB at a time, since writes wait for it.
	cutPages = "PRAGMA incremental_vacuum(256)"
	// sparePages is the number of empty pages to keep.
	sparePages = 256
	// tidyPause is the pause before tidying, and between its steps.
	tidyPause = 20 * time.Millisecond
	// tidyRetry is the pause after a failure, or if readers of old data prevent tidying.
	tidyRetry = time.Second
	// convertBytes is the largest database to convert on opening, which takes about 10 s.
	convertBytes = 1 << 30
)

// tidy is called by the writer only, like [sqliteFile.transact].
func (s *sqliteFile) tidy() (pause time.Duration) {
	if !s.untidy {
		return 0
	}
	t := &tx{ctx: context.Background(), q: s.session, dialect: sqliteDialect}
	var empty int
	if _, err := t.row("PRAGMA freelist_count", nil, &empty); err != nil {
		return tidyRetry
	}
	if empty > sparePages && s.returnsPages {
		// The result has a row for each page.
		if err := t.each(cutPages, nil, func(func(...any) error) error { return nil }); err != nil {
			return tidyRetry
		}
		return tidyPause
	}
	var busy, pages, moved int
	if _, err := t.row("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &pages, &moved); err != nil || busy != 0 {
		return tidyRetry
	}
	s.untidy = false
	return 0
}

// makeOver converts a database of an older version, so that it returns space. A failure is logged, and the database used as it is.
func (s *sqliteFile) makeOver(ctx context.Context, log *slog.Logger) error {
	t := &tx{ctx: ctx, q: s.session, dialect: sqliteDialect}
	var mode, pages, size int64
	for pragma, value := range map[string]*int64{"auto_vacuum": &mode, "page_count": &pages, "page_size": &size} {
		if _, err := t.row("PRAGMA "+pragma, nil, value); err != nil {
			return err
		}
	}
	const incremental = 2
	if s.returnsPages = mode == incremental; s.returnsPages {
		return nil
	}
	bytes := humanize.Bytes(uint64(pages * size)) //nolint:gosec // neither is negative
	if pages*size > convertBytes {
		log.Warn("the store doesn't free the space of deleted data: it is large, and was created by an older lmcaddy. While lmcaddy is "+
			"stopped, sqlite3 FILE 'PRAGMA auto_vacuum=INCREMENTAL; VACUUM' fixes that", "file", s.path, "size", bytes)
		return nil
	}
	began := time.Now()
	// The temporary copy may be larger than the memory.
	for _, statement := range []string{"PRAGMA temp_store = FILE", "VACUUM", "PRAGMA temp_store = MEMORY"} {
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			log.Warn("the store doesn't free the space of deleted data: converting it failed; the next start tries again",
				"error", s.explain(err))
			return nil
		}
	}
	s.returnsPages = true
	log.Info("the store was converted to free the space of deleted data", "file", s.path, "size", bytes, "took", time.Since(began))
	return nil
}
