package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// mostListed is the most IDs in one query.
const mostListed = 500

// inLists calls do with lists of IDs for queries: a list's text, and its arguments. IDs that nothing can have are left out.
func inLists(ids []string, do func(list string, args []any) error) error {
	for some := range slices.Chunk(ids, mostListed) {
		var list strings.Builder
		args := make([]any, 0, len(some))
		for _, id := range some {
			if !possible(id) {
				continue
			}
			if len(args) > 0 {
				list.WriteString(", ")
			}
			args = append(args, id)
			fmt.Fprintf(&list, "$%d", len(args))
		}
		if len(args) == 0 {
			continue
		}
		if err := do("("+list.String()+")", args); err != nil {
			return err
		}
	}
	return nil
}

// selectSomeFamilies is followed by a list of IDs.
const selectSomeFamilies = `SELECT id FROM families WHERE id IN `

// Families returns which of some conversations exist, in any order. They are named by their first turns.
func (s *Store) Families(ctx context.Context, ids []string) ([]string, error) {
	var all []string
	err := inLists(ids, func(list string, args []any) error {
		var found []string
		err := s.read(ctx, func(q querier) error {
			found = nil // it may run twice
			return each(ctx, q, selectSomeFamilies+list, args, func(scan func(...any) error) error {
				var id string
				err := scan(&id)
				found = append(found, id)
				return err
			})
		})
		all = append(all, found...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
