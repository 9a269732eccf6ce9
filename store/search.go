package store

import (
	"context"
	"encoding/json"
	"math"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Filter says which conversations of an owner are wanted. The zero value is all of them.
type Filter struct {
	Text   string // in the title, or in a message, thought, call or result of any turn; upper and lower case are the same
	Pinned bool   // only those that are pinned
}

const (
	pageOfOwner = `f.owner = $1 AND (f.newest, f.id) < ($2, $3) AND (f.pinned OR NOT $5) ORDER BY f.newest DESC, f.id DESC LIMIT $4`

	// pageWithText finds too many: a word may also be a name in the JSON of a turn. A text is in lower case ($5), or as it was given ($6).
	pageWithText = `f.owner = $1 AND (f.newest, f.id) < ($2, $3) AND (f.pinned OR NOT $7)
		AND ({in}(lower(f.title), $8) > 0 OR {in}(lower(f.name), $8) > 0
			OR EXISTS (SELECT 1 FROM turns t WHERE t.family = f.id AND NOT t.hidden
				AND ({in}(lower({text}t.body{/text}), $5) > 0 OR {in}({text}t.body{/text}, $6) > 0)))
		ORDER BY f.newest DESC, f.id DESC LIMIT $4`
)

// Search returns an owner's conversations that a filter wants, after a position, the last updated first, at most a number of them. The cost
// depends on what it returns. A text costs as much as all that the owner has stored, until enough is found.
func (s *Store) Search(ctx context.Context, owner string, f Filter, after Position, most int) ([]Conversation, error) {
	text := strings.TrimSpace(f.Text)
	if owner != "" && !possible(owner) || after.ID != "" && !possible(after.ID) || strings.ContainsRune(text, 0) {
		return nil, nil
	}
	var found []Conversation
	for {
		newest := int64(math.MaxInt64)
		if after != (Position{}) {
			newest = after.Updated.UnixNano()
		}
		if text == "" {
			return s.conversations(ctx, pageOfOwner, owner, newest, after.ID, most, f.Pinned)
		}
		lower := strings.ToLower(text)
		page, err := s.conversations(ctx, pageWithText, owner, newest, after.ID, most, inJSON(lower), inJSON(text), f.Pinned, lower)
		if err != nil {
			return nil, err
		}
		for i := range page {
			has, err := s.hasText(ctx, &page[i], lower)
			if err != nil {
				return nil, err
			}
			if found = append(found, page[i]); !has {
				found = found[:len(found)-1]
			}
			if len(found) == most {
				return found, nil
			}
		}
		if len(page) < most {
			return found, nil
		}
		after = Position{Updated: page[len(page)-1].Updated, ID: page[len(page)-1].ID}
	}
}

// inJSON is a text as it stands in the JSON of a turn.
func inJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return text // never: it is a string
	}
	return string(quoted[1 : len(quoted)-1])
}

// hasText reports whether a text is in what is shown of a conversation.
func (s *Store) hasText(ctx context.Context, c *Conversation, lower string) (bool, error) {
	if strings.Contains(strings.ToLower(c.Title), lower) {
		return true, nil
	}
	has := false
	err := s.read(ctx, func(t *tx) error {
		turns, err := scan(t, selectBranches, c.Owner, c.ID)
		if err != nil {
			if _, gone := err.(*NotFound); gone { //nolint:errorlint // it isn't wrapped
				return nil
			}
			return err
		}
		for _, turn := range turns {
			if itemsHave(turn.In, lower) || itemsHave(turn.Out, lower) {
				has = true
				return nil
			}
		}
		return nil
	})
	return has, err
}

func itemsHave(items []translate.Item, lower string) bool {
	for i := range items {
		item := &items[i]
		for j := range item.Parts {
			if strings.Contains(strings.ToLower(item.Parts[j].Plain()), lower) {
				return true
			}
		}
		if strings.Contains(strings.ToLower(string(item.Args)), lower) || strings.Contains(strings.ToLower(item.Tool), lower) {
			return true
		}
	}
	return false
}

const (
	nameFamily = `UPDATE families SET name = $3 WHERE id = $1 AND owner = $2 AND newest > 0`
	pinFamily  = `UPDATE families SET pinned = $3 WHERE id = $1 AND owner = $2 AND newest > 0`
)

// Edit changes a conversation's title and whether it is pinned; nil: that stays. An empty title is again the first message's beginning. The
// error is *[NoConversation] if the owner has no conversation with the ID.
func (s *Store) Edit(ctx context.Context, owner, id string, title *string, pinned *bool) error {
	return s.write(ctx, 0, func(t *tx) error {
		n := int64(1)
		var err error
		if title != nil {
			n, err = t.exec(nameFamily, id, owner, titleIn(*title))
		}
		if err == nil && n > 0 && pinned != nil {
			n, err = t.exec(pinFamily, id, owner, *pinned)
		}
		if err == nil && n == 0 {
			err = &NoConversation{ID: id}
		}
		return err
	})
}
