package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Conversation describes a conversation, with all of its branches.
type Conversation struct {
	ID      string // that of its first turn
	Owner   string
	Dialect string // of its first turn
	Title   string // that it was given, or the beginning of the first message of the user; empty if it has none
	Pinned  bool
	Created time.Time
	Updated time.Time // when its newest turn was made

	// Last is the newest turn, which a client continues. Turns is the number of turns on the way to it.
	Last   string
	Model  string // of the newest turn
	Status Status // of the newest turn
	Turns  int
}

// Position is a place in a list of conversations: after the one that was updated then and has this ID. The zero value is the beginning.
type Position struct {
	Updated time.Time
	ID      string
}

// NoConversation says that the owner has no conversation with an ID, or several whose IDs begin so.
type NoConversation struct {
	ID          string
	IsAmbiguous bool
}

func (e *NoConversation) Error() string {
	if e.IsAmbiguous {
		return fmt.Sprintf("the ids of several conversations begin with %q", e.ID)
	}
	return fmt.Sprintf("no stored conversation has the id %q", e.ID)
}

// selectConversations takes a condition. The newest turn is the one with the family's time. It is found in the index turns_family, in a
// time that depends on the number of the family's turns.
const selectConversations = `SELECT c.id, c.owner, c.dialect, CASE WHEN c.name = '' THEN c.title ELSE c.name END,
		c.pinned, c.newest, c.created, c.last, coalesce(e.model, ''), coalesce(e.status, ''), coalesce(e.depth, 0)
	FROM (SELECT f.id AS id, f.owner AS owner, f.dialect AS dialect, f.title AS title, f.name AS name, f.pinned AS pinned,
			f.newest AS newest,
			coalesce((SELECT r.created FROM turns r WHERE r.id = f.id), 0) AS created,
			coalesce((SELECT min(t.id) FROM turns t WHERE t.family = f.id AND t.created = f.newest AND NOT t.hidden), '') AS last
		FROM families f WHERE f.newest > 0 AND %s) c
	LEFT JOIN turns e ON e.id = c.last ORDER BY c.newest DESC, c.id DESC`

const (
	oneOfOwner = `f.owner = $1 AND f.id = $2`

	// selectNewest is for a family whose newest turn is hidden, since the clock was put back.
	selectNewest = `SELECT id, model, status, depth FROM turns WHERE family = $1 AND NOT hidden ORDER BY created DESC, id DESC LIMIT 1`

	// selectBeginning finds families by the beginnings of their IDs, which end in hexadecimal digits.
	selectBeginning = `SELECT id FROM families WHERE id > $1 AND id < $2 AND owner = $3 AND newest > 0 ORDER BY id LIMIT 2`
)

// Conversation returns the conversation with an ID: its own, that of one of its turns, or a beginning of its own of at least
// [ShortestID] characters that no other conversation of the owner has. The error is *[NoConversation] if there is none.
func (s *Store) Conversation(ctx context.Context, owner, id string) (Conversation, error) {
	none := &NoConversation{ID: id}
	if !possible(id) || owner != "" && !possible(owner) {
		return Conversation{}, none
	}
	var families []string
	err := s.read(ctx, func(t *tx) (err error) {
		if families, err = column[string](t, selectFamily, id, owner); err == nil && len(families) == 0 && len(id) >= ShortestID {
			families, err = column[string](t, selectBeginning, id, id+"g", owner)
		}
		return err
	})
	switch {
	case err != nil:
		return Conversation{}, err
	case len(families) > 1:
		none.IsAmbiguous = true
		return Conversation{}, none
	case len(families) == 0:
		families = []string{id} // of which the first turn is hidden, if there is one
	}
	found, err := s.conversations(ctx, oneOfOwner, owner, families[0])
	if err == nil && len(found) == 0 {
		err = none
	}
	if err != nil {
		return Conversation{}, err
	}
	return found[0], nil
}

// ShortestID is the length of the shortest beginning of an ID by which a conversation is found.
const ShortestID = len("resp_") + 6

// selectSomeFamilies is followed by a list of IDs.
const selectSomeFamilies = `SELECT id FROM families WHERE id IN `

// Families returns which of some conversations exist, in any order. They are named by their first turns.
func (s *Store) Families(ctx context.Context, ids []string) ([]string, error) {
	var all []string
	err := inLists(ids, func(list string, args []any) error {
		return s.read(ctx, func(t *tx) error {
			found, err := column[string](t, selectSomeFamilies+list, args...)
			if err == nil {
				all = append(all, found...)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (s *Store) conversations(ctx context.Context, condition string, args ...any) (found []Conversation, err error) {
	err = s.read(ctx, func(t *tx) error {
		all, err := collect(t, fmt.Sprintf(selectConversations, condition), args, func(c *Conversation, scan func(...any) error) error {
			var updated, created int64
			err := scan(&c.ID, &c.Owner, &c.Dialect, &c.Title, &c.Pinned, &updated, &created, &c.Last, &c.Model, &c.Status, &c.Turns)
			c.Updated, c.Created = time.Unix(0, updated), time.Unix(0, created)
			c.Turns++ // it was the depth
			return err
		})
		if err != nil {
			return err
		}
		found = all[:0]
		for _, c := range all {
			if c.Last == "" {
				isThere, err := t.row(selectNewest, []any{c.ID}, &c.Last, &c.Model, &c.Status, &c.Turns)
				if err != nil {
					return err
				}
				if !isThere {
					continue
				}
				c.Turns++
			}
			found = append(found, c)
		}
		return nil
	})
	return found, err
}

const (
	// longestTitle bounds a title, in characters.
	longestTitle = 80
	// longestRead bounds the bytes of a message that are read for its title.
	longestRead = 4 * longestTitle * utf8.UTFMax
)

// titleOf returns the beginning of the first message of the user, in one line.
func titleOf(items []translate.Item) string {
	for i := range items {
		if items[i].Role != translate.RoleUser {
			continue
		}
		for _, part := range items[i].Parts {
			if title := titleIn(part.Plain()); title != "" {
				return title
			}
		}
	}
	return ""
}

func titleIn(text string) string {
	if len(text) > longestRead {
		text = strings.TrimSpace(text)
		text = text[:min(len(text), longestRead)]
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	title := []rune(strings.Join(strings.Fields(text), " "))
	if len(title) > longestTitle {
		return string(title[:longestTitle-1]) + "…"
	}
	return string(title)
}

const (
	selectTurn = `SELECT id, coalesce(parent, ''), family, owner, model, status, created, depth, body FROM turns
		WHERE id = $1 AND owner = $2 AND NOT hidden`

	// The recursion carries the bodies. A join to look them up would cost more, and a planner that misjudges the length of the chain
	// might scan the whole table. The decreasing depth ends the recursion even if parents form a cycle.
	selectChain = `WITH RECURSIVE chain (id, parent, family, owner, model, status, created, depth, body) AS (
		SELECT id, parent, family, owner, model, status, created, depth, body FROM turns
			WHERE id = $1 AND owner = $2 AND NOT hidden
		UNION ALL
		SELECT t.id, t.parent, t.family, t.owner, t.model, t.status, t.created, t.depth, t.body
			FROM chain c JOIN turns t ON t.id = c.parent AND t.depth < c.depth
	) SELECT id, coalesce(parent, ''), family, owner, model, status, created, depth, body FROM chain`

	selectBranches = `SELECT id, coalesce(parent, ''), family, owner, model, status, created, depth, body FROM turns
		WHERE family = $1 AND owner = $2 ORDER BY created DESC, id DESC LIMIT 1000`
)

// Get returns a turn with the data of its images. The error is *[NotFound] if the owner has no such turn.
func (s *Store) Get(ctx context.Context, owner, id string) (*Turn, error) {
	turns, err := s.turns(ctx, selectTurn, owner, id)
	if err != nil {
		return nil, err
	}
	return turns[0], nil
}

// Chain returns the conversation that ends with a turn, from its first turn on, with the data of media. It includes deleted
// turns that others continue. The error is *[NotFound] if the owner has no such turn.
//
// Turns with the same image share its Data, which must not be modified.
func (s *Store) Chain(ctx context.Context, owner, id string) ([]*Turn, error) {
	return s.turns(ctx, selectChain, owner, id)
}

// Branches returns the newest turns of a conversation in all of its branches, at most 1000, the oldest first, with the data of media.
// It includes deleted turns that others continue. The conversation is named by its first turn. The error is *[NotFound] if the owner has
// no such conversation.
func (s *Store) Branches(ctx context.Context, owner, id string) ([]*Turn, error) {
	turns, err := s.turns(ctx, selectBranches, owner, id)
	slices.SortStableFunc(turns, func(a, b *Turn) int { return a.Created.Compare(b.Created) }) // a turn is deeper than what it continues
	return turns, err
}

// turns runs one of the queries above. It returns at least one turn, or an error.
func (s *Store) turns(ctx context.Context, query, owner, id string) ([]*Turn, error) {
	if !possible(id) || owner != "" && !possible(owner) {
		return nil, &NotFound{ID: id}
	}
	var turns []*Turn
	err := s.read(ctx, func(t *tx) error {
		// Turns that are deleted between the two queries are gone in the second round.
		for range 2 {
			var missing *Turn
			var err error
			if turns, err = scan(t, query, owner, id); err != nil {
				return err
			}
			if missing, err = readMedia(t, turns); err != nil || missing == nil {
				return err
			}
			err = fmt.Errorf("a file of the stored response %q is missing", missing.ID)
			if again, _ := scan(t, query, owner, id); again != nil {
				return err
			}
		}
		return nil
	})
	return turns, err
}

// scan returns turns sorted by depth.
func scan(t *tx, query, owner, id string) ([]*Turn, error) {
	type row struct {
		*Turn

		depth int
	}
	rows, err := collect(t, query, []any{id, owner}, func(r *row, scan func(...any) error) error {
		r.Turn = new(Turn)
		var created int64
		var body []byte
		if err := scan(&r.ID, &r.Parent, &r.Family, &r.Owner, &r.Model, &r.Status, &created, &r.depth, &body); err != nil {
			return err
		}
		r.Created = time.Unix(0, created)
		var b turnBody
		if err := json.Unmarshal(body, &b); err != nil {
			return fmt.Errorf("the stored response %q can't be read: %w", r.ID, err)
		}
		r.In, r.Out, r.Request, r.Usage, r.Figures = b.In, b.Out, b.Request, translate.Usage(b.Usage), b.Figures
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, &NotFound{ID: id}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.depth, b.depth) })
	if query == selectChain && rows[len(rows)-1].depth != len(rows)-1 {
		return nil, fmt.Errorf("turns that the stored response %q continues are missing", id)
	}
	turns := make([]*Turn, len(rows))
	for i, r := range rows {
		turns[i] = r.Turn
	}
	return turns, nil
}
