package store

import (
	"fmt"
	"strings"
	"testing"
)

// crowdID returns the ID of a turn of crowd. The IDs are spread like random ones.
func crowdID(n int) string {
	return fmt.Sprintf("resp_%d%s", 10_000_000_000+(n*2654435761)%4294967296, strings.Repeat("0", 37))
}

// crowd fills a store quickly with n turns in conversations of ten. The first turn of each has an image.
func crowd(t testing.TB, s *Store, n int) {
	t.Helper()
	data, _, err := encode(turn(nil, "What does this cost after a million others?"))
	must(t, err)
	id := func(i string) string {
		return strings.NewReplacer("I", i, "ZEROS", strings.Repeat("0", 37)).Replace(
			"('resp_' || CAST(10000000000 + ((I) * 2654435761) % 4294967296 AS TEXT) || 'ZEROS')")
	}
	const each = 100_000
	for from := 0; from < n; from += each {
		to := min(from+each, n)
		numbers := fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT CAST(%d AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, from, to-1)
		must(t, s.write(t.Context(), 0, func(t *tx) error {
			for _, query := range []string{
				`INSERT INTO families (id, newest, turns) SELECT ` + id("i") + `, i + 10, 10 FROM n WHERE i % 10 = 0`,
				`INSERT INTO blobs (hash, refs, data) SELECT ` + id("i") + `, 1, CAST('image' AS {bytes}) FROM n WHERE i % 10 = 0`,
			} {
				if _, err := t.exec(numbers + query); err != nil {
					return err
				}
			}
			_, err := t.exec(numbers+(`INSERT INTO turns (id, parent, family, owner, model, status, created, depth, images, body)
				SELECT `+id("i")+`, CASE WHEN i % 10 > 0 THEN `+id("i - 1")+` END, `+id("i - i % 10")+`, '', 'lmcaddy/tinychat', 'completed',
				i + 1, i % 10, CASE WHEN i % 10 > 0 THEN '' ELSE `+id("i")+` END, CAST($1 AS {bytes}) FROM n`), data)
			if err == nil {
				err = count(t, "", to-from)
			}
			return err
		}))
	}
	must(t, s.write(t.Context(), 0, func(t *tx) error {
		_, err := t.exec("ANALYZE") // as PostgreSQL does by itself after a while
		return err
	}))
}
