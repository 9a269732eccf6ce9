package store

import (
	"database/sql"
	"testing"
)

// TestSQLite_KeepsFewPages: the page cache is never released, and isn't in the heap that Go's limits apply to.
func TestSQLite_KeepsFewPages(t *testing.T) {
	t.Parallel()
	s := open(t, backends[0].at(t)).db.(*sqliteFile)
	kept := func(row *sql.Row) (kib int) {
		t.Helper()
		must(t, row.Scan(&kib))
		if kib >= 0 {
			t.Errorf("%d is a number of pages, not of KiB", kib)
		}
		return -kib
	}
	writer := kept(s.conn.QueryRowContext(t.Context(), "PRAGMA cache_size"))
	reader := kept(s.reading.QueryRowContext(t.Context(), "PRAGMA cache_size"))
	if all := writer + sqliteReaders*reader; all > 8<<10 {
		t.Errorf("the connections keep %d KiB together", all)
	}
}
