//go:build unix

package store

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/internal/openfiles/openfilestest"
)

// TestSQLite_WithoutFileDescriptors: SQLite only says that it can't open a file. A store that is open needs no more of them.
func TestSQLite_WithoutFileDescriptors(t *testing.T) {
	openfilestest.Run(t, func(t *testing.T, without func(func())) {
		at := backends[0].at(t)
		s := open(t, at)
		stored(t, s, turn(nil, "root"))
		without(func() {
			if _, err := Open(t.Context(), at); !openfiles.AreExhausted(err) {
				t.Errorf("opening gives %v", err)
			}
			if err := s.read(t.Context(), func(tx *tx) error {
				rows, err := tx.q.QueryContext(t.Context(), "SELECT id FROM turns")
				if err != nil {
					return err
				}
				defer func() { _ = rows.Close() }()
				_, err = s.Usage(t.Context(), 0, 1) // by another connection
				return err
			}); err != nil {
				t.Errorf("reading gives %v", err)
			}
			stored(t, s, turn(nil, "x"))
		})
	})
}
