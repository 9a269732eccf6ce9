package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSearch(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		cats := stored(t, s, turn(nil, `All about "Cats"`))
		stored(t, s, turn(cats, "and <dogs>"))
		birds := stored(t, s, turn(nil, "birds"))
		stored(t, s, turn(nil, "ÄPFEL"))
		title, pinned := "  The \n Parrots ", true
		must(t, s.Edit(t.Context(), "", birds.ID, &title, &pinned))
		for query, want := range map[Filter][]string{
			{Text: "cats"}: {cats.ID}, {Text: ` "CATS" `}: {cats.ID}, {Text: "<Dogs>"}: {cats.ID}, {Text: "parrots"}: {birds.ID}, {Text: "birds"}: {birds.ID},
			{Text: "parts"}: nil, {Text: "role"}: nil, {Text: "%"}: nil, {Pinned: true}: {birds.ID}, {Text: "cats", Pinned: true}: nil, {Text: "birds", Pinned: true}: {birds.ID},
		} {
			found, err := s.Search(t.Context(), "", query, Position{}, 2)
			must(t, err)
			var got []string
			for _, c := range found {
				got = append(got, c.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%+v: %s", query, diff)
			}
		}
		if found, err := s.Search(t.Context(), "", Filter{Text: "Äpfel"}, Position{}, 9); err != nil || len(found) > 1 {
			t.Errorf("%v, %v", found, err)
		}
		named, err := s.Conversation(t.Context(), "", birds.ID)
		if must(t, err); named.Title != "The Parrots" || !named.Pinned {
			t.Errorf("%+v", named)
		}
		title, pinned = "", false
		must(t, s.Edit(t.Context(), "", birds.ID, &title, &pinned))
		if named, err = s.Conversation(t.Context(), "", birds.ID); err != nil || named.Title != "birds" || named.Pinned {
			t.Errorf("%+v, %v", named, err)
		}
		if _, isMissing := s.Edit(t.Context(), "other", birds.ID, nil, &pinned).(*NoConversation); !isMissing { //nolint:errorlint // it isn't wrapped
			t.Error("another owner may change it")
		}
	})
}
