//go:build unix

package store

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/internal/openfiles/openfilestest"
)

// TestSQLite_WithoutFileDescriptors: SQLite only says that it can't open a file.
func TestSQLite_WithoutFileDescriptors(t *testing.T) {
	openfilestest.Run(t, func(t *testing.T, without func(func())) {
		s := open(t, backends[0].at(t))
		root := stored(t, s, turn(nil, "root"))
		without(func() {
			// Each busy reader needs another connection, and thereby another file.
			err := s.read(t.Context(), func(q querier) error {
				rows, err := q.QueryContext(t.Context(), "SELECT id FROM turns")
				if err != nil {
					return err
				}
				defer func() { _ = rows.Close() }()
				_, err = s.Usage(t.Context(), 0, 1)
				return err
			})
			if !openfiles.AreExhausted(err) {
				t.Errorf("it gives %v", err)
			}
		})
		if _, err := s.Chain(t.Context(), "", root.ID); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
