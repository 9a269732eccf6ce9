package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChain_Branches(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		root := turn(nil, "My name is Ada.")
		left, right := turn(root, "left"), turn(root, "right")
		leaf := stored(t, s, root, left, right, turn(nil, "another conversation"), turn(right, "leaf"))
		for id, want := range map[string][]string{
			root.ID: {"My name is Ada."},
			left.ID: {"My name is Ada.", "left"},
			leaf.ID: {"My name is Ada.", "right", "leaf"},
		} {
			if diff := cmp.Diff(want, texts(t, s, "", id)); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestChain_OfAnotherOwnerIsUnknown(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		mine, anonymous := turn(nil, "mine"), turn(nil, "anonymous")
		mine.Owner = "tok_1"
		stored(t, s, mine, anonymous)
		for _, c := range []struct{ owner, id string }{
			{"tok_2", mine.ID},
			{"", mine.ID},
			{"tok_1", anonymous.ID},
			{"tok_1", "resp_unknown"},
			{"tok_1", ""},
			{"tok_1", "\xff"},
			{"tok_1\x00", mine.ID},
			{"\xff", mine.ID},
			{"", "zero\x00"},
		} {
			for name, err := range map[string]error{
				"Get":    second(s.Get(t.Context(), c.owner, c.id)),
				"Chain":  second(s.Chain(t.Context(), c.owner, c.id)),
				"Delete": s.Delete(t.Context(), c.owner, c.id),
			} {
				if diff := cmp.Diff(error(&NotFound{c.id}), err); diff != "" {
					t.Errorf("%s of %q by %q: %s", name, c.id, c.owner, diff)
				}
			}
		}
		if n := rows(t, s, "turns"); n != 2 {
			t.Errorf("%d turns are left", n)
		}
	})
}

func TestChain_EndsWhereParentsGoInACircle(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		root := turn(nil, "root")
		leaf := stored(t, s, root, turn(root, "leaf"))
		must(t, s.write(t.Context(), 0, func(t *tx) error { // as nothing but a hand in the database does it
			_, err := t.exec("UPDATE turns SET parent = $1 WHERE id = $2", leaf.ID, root.ID)
			return err
		}))
		if got := texts(t, s, "", leaf.ID); len(got) != 2 {
			t.Errorf("got %q", got)
		}
	})
}

func TestChain_Cancelled(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		root := stored(t, s, turn(nil, "root"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Chain(ctx, "", root.ID); !errors.Is(err, context.Canceled) {
			t.Errorf("Chain gives %v", err)
		}
		if err := s.Put(ctx, turn(root, "x")); !errors.Is(err, context.Canceled) {
			t.Errorf("Put gives %v", err)
		}
		if n := rows(t, s, "turns"); n != 1 {
			t.Errorf("%d turns are stored", n)
		}
	})
}

// TestPlan checks that no query of a request or of Prune scans a whole table.
func TestPlan(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		crowd(t, s, 10_000)
		explain, forbidden := "EXPLAIN QUERY PLAN ", []string{"SCAN turns", "SCAN t", "SCAN families", "SCAN blobs", "TEMP B-TREE FOR ORDER"}
		if _, is := s.db.(*postgres); is {
			explain, forbidden = "EXPLAIN ", []string{"Seq Scan"}
		}
		for _, query := range []string{
			selectTurn, selectChain, selectSame, selectDepth, selectFamily, growFamily, insertNext, lockFamily, deleteLeaf, hideTurn,
			shrinkFamily, deleteFamily, selectOldest, deleteTurns, dropFamily, halveFamily,
			shareBlob, insertBlob, dropBlob, releaseBlob, selectBlob,
		} {
			steps := plan(t, s, explain, query)
			t.Logf("%s\n%s", query, steps)
			for _, bad := range forbidden {
				for step := range strings.Lines(steps) {
					if strings.Contains(step, bad) {
						t.Errorf("the plan of\n%s\nhas %q", query, strings.TrimSpace(step))
					}
				}
			}
		}
	})
}

// plan returns the steps of a query.
func plan(t *testing.T, s *Store, explain, query string) string {
	t.Helper()
	var steps strings.Builder
	for n := 9; n > 0; n-- { // arguments: at most so many
		query = strings.ReplaceAll(query, fmt.Sprintf("$%d", n), argument(query, n))
	}
	must(t, s.db.read(t.Context(), func(tx *tx) error {
		return tx.each(explain+query, nil, func(scan func(...any) error) error {
			var step string
			var number int
			err := scan(&step)
			if err != nil {
				err = scan(&number, &number, &number, &step)
			}
			steps.WriteString(step + "\n")
			return err
		})
	}))
	return steps.String()
}

// argument returns an untyped literal.
func argument(query string, n int) string {
	place := fmt.Sprintf("$%d", n)
	switch {
	case strings.Contains(query, "hidden = "+place):
		return "TRUE"
	case strings.Contains(query, "id = "+place), strings.Contains(query, "family = "+place):
		return fmt.Sprintf("'%s'", crowdID(5))
	}
	return "'5'"
}
