package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/dustin/go-humanize"
)

// What is deleted is to be gone from the files, and its room to be the disk's again. secure_delete=ON overwrites it in the
// database. What stands in the write-ahead log is gone when that is cut to nothing, and empty pages when they are cut off the
// end of the file, which only a database can do that was made for it (auto_vacuum=INCREMENTAL).
const (
	// cutPages cuts off so many pages of 4 KiB at a time: others wait only so long.
	cutPages = "PRAGMA incremental_vacuum(256)"
	// sparePages are left for what comes next.
	sparePages = 256
	// tidyPause lies between the end of a transaction and the tidying, and between its pieces.
	tidyPause = 20 * time.Millisecond
	// tidyRetry is the pause after a try that failed, or came to nothing since somebody still reads what was there before.
	tidyRetry = time.Second
	// convertBytes is the size up to which an older database is made over at the start. That takes some 10 s.
	convertBytes = 1 << 30
)

// tidy is the writer's, like [sqliteFile.transact].
func (s *sqliteFile) tidy() (pause time.Duration) {
	if !s.untidy {
		return 0
	}
	t := &tx{ctx: context.Background(), q: s.session}
	var empty int
	if _, err := t.row("PRAGMA freelist_count", nil, &empty); err != nil {
		return tidyRetry
	}
	if empty > sparePages && s.returnsPages {
		// It gives a row for each page that it has cut off.
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

// makeOver lets a database that an older program made return its room. One that can't be made over now serves all the same.
func (s *sqliteFile) makeOver(ctx context.Context, log *slog.Logger) error {
	t := &tx{ctx: ctx, q: s.session}
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
	bytes := humanize.IBytes(uint64(pages * size)) //nolint:gosec // neither is negative
	if pages*size > convertBytes {
		log.Warn("the store doesn't return the room of what is deleted: it is large, and was made by an older lmcaddy. While lmcaddy is "+
			"stopped, sqlite3 FILE 'PRAGMA auto_vacuum=INCREMENTAL; VACUUM' ends that", "file", s.path, "size", bytes)
		return nil
	}
	began := time.Now()
	// The copy that is made on the way needs not fit into the memory.
	for _, statement := range []string{"PRAGMA temp_store = FILE", "VACUUM", "PRAGMA temp_store = MEMORY"} {
		if _, err := s.conn.ExecContext(ctx, statement); err != nil {
			log.Warn("the store doesn't return the room of what is deleted: making it over failed; the next start tries again",
				"error", s.explain(err))
			return nil
		}
	}
	s.returnsPages = true
	log.Info("the store was made over to return the room of what is deleted", "file", s.path, "size", bytes, "took", time.Since(began))
	return nil
}
