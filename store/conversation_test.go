package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

// at gives a turn a time, in seconds since 1970, and a dialect.
func (t *Turn) at(second int64) *Turn {
	t.Created, t.Dialect = time.Unix(second, 0), "native"
	return t
}

// listed returns the titles of a page of an owner's conversations.
func listed(t testing.TB, s *Store, owner string, after Position, most int) (titles []string, end Position) {
	t.Helper()
	page, err := s.Search(t.Context(), owner, Filter{}, after, most)
	must(t, err)
	for i := range page {
		titles = append(titles, page[i].Title)
		end = Position{page[i].Updated, page[i].ID}
	}
	return titles, end
}

func TestConversations_TheLastUpdatedFirst(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		old, middle, young := turn(nil, "old").at(10), turn(nil, "middle").at(20), turn(nil, "young").at(30)
		other := turn(nil, "another's").at(40)
		other.Owner = "tok_1"
		stored(t, s, old, middle, young, other)
		next := turn(old, "goes on").at(50)
		next.Model, next.Status = "p/other", Incomplete
		branch := turn(old, "branches").at(45)
		stored(t, s, branch, next)

		if got, _ := listed(t, s, "", Position{}, 9); !cmp.Equal(got, []string{"old", "young", "middle"}) {
			t.Errorf("%q", got)
		}
		if got, _ := listed(t, s, "tok_1", Position{}, 9); !cmp.Equal(got, []string{"another's"}) {
			t.Errorf("of another owner: %q", got)
		}
		page, err := s.Search(t.Context(), "", Filter{}, Position{}, 1)
		must(t, err)
		want := []Conversation{{
			ID: old.ID, Dialect: "native", Title: "old", Created: old.Created, Updated: next.Created,
			Last: next.ID, Model: "p/other", Status: Incomplete, Turns: 2,
		}}
		if diff := cmp.Diff(want, page); diff != "" {
			t.Error(diff)
		}
		must(t, s.Delete(t.Context(), "", next.ID))
		must(t, s.Delete(t.Context(), "", old.ID)) // the branch goes on
		if got, err := s.Conversation(t.Context(), "", old.ID); err != nil || got.Last != branch.ID || got.Title != "old" {
			t.Errorf("%v: %+v", err, got)
		}
		must(t, s.Delete(t.Context(), "", branch.ID))
		if got, _ := listed(t, s, "", Position{}, 9); !cmp.Equal(got, []string{"young", "middle"}) {
			t.Errorf("after the deletion: %q", got)
		}
	})
}

func TestConversations_PageByPage(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		var want []string
		for n := range 7 {
			title := fmt.Sprint(n)
			stored(t, s, turn(nil, title).at(100-int64(n)/2)) // pairs of the same time
			want = append(want, title)
		}
		var got []string
		for after := (Position{}); ; {
			page, end := listed(t, s, "", after, 2)
			if len(page) == 0 {
				break
			}
			got, after = append(got, page...), end
		}
		if len(got) != len(want) || got[0] != "1" || got[6] != "6" { // of the same time, by the id
			t.Errorf("%q", got)
		}
		seen := map[string]bool{}
		for _, title := range got {
			seen[title] = true
		}
		if len(seen) != len(want) {
			t.Errorf("%q", got)
		}
	})
}

// The newest turn may be hidden, if the clock was put back.
func TestConversations_ADeletedNewestTurn(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		first := turn(nil, "first").at(10)
		late := turn(first, "late").at(99)
		early := turn(late, "early").at(20)
		stored(t, s, first, late, early)
		must(t, s.Delete(t.Context(), "", late.ID))
		got, err := s.Conversation(t.Context(), "", early.ID)
		if err != nil || got.Last != early.ID || got.Turns != 3 || got.ID != first.ID {
			t.Errorf("%v: %+v", err, got)
		}
	})
}

func TestBranches(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		first := turn(nil, "first").at(10)
		left, right := turn(first, "left").at(20), turn(first, "right").at(30)
		leaf, late := turn(left, "leaf").at(40), turn(right, "late").at(50)
		stored(t, s, first, right, left, late, leaf, turn(nil, "another").at(60))
		must(t, s.Delete(t.Context(), "", left.ID)) // leaf continues it
		must(t, s.Delete(t.Context(), "", late.ID))
		turns, err := s.Branches(t.Context(), "", first.ID)
		var got []string
		for _, found := range turns {
			got = append(got, found.In[0].Parts[0].Text)
		}
		if diff := cmp.Diff([]string{"first", "left", "right", "leaf"}, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		for _, c := range []struct{ owner, id string }{{"tok_1", first.ID}, {"", leaf.ID}, {"", ""}, {"", "\xff"}} {
			if _, err := s.Branches(t.Context(), c.owner, c.id); !cmp.Equal(error(&NotFound{c.id}), err) {
				t.Errorf("%q of %q: %v", c.id, c.owner, err)
			}
		}
	})
}

func TestConversation_ByItsBeginning(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		first, second := turn(nil, "first").at(1), turn(nil, "second").at(2)
		first.ID, second.ID = "resp_abcdef1"+strings.Repeat("0", 41), "resp_abcdef2"+strings.Repeat("0", 41)
		next := turn(first, "next").at(3)
		stored(t, s, first, second, next)
		for id, want := range map[string]string{
			"resp_abcdef1": "first", "resp_abcdef20": "second", first.ID: "first", next.ID: "first",
			"resp_abcdef": "ambiguous", "resp_abcde": "", "resp_abcdef3": "", "resp_": "", "": "", "\x00": "", "resp_abcdeg": "",
		} {
			got, err := s.Conversation(t.Context(), "", id)
			none, isNone := errors.AsType[*NoConversation](err)
			switch {
			case want == "" || want == "ambiguous":
				if !isNone || none.IsAmbiguous != (want == "ambiguous") {
					t.Errorf("%q: %v", id, err)
				}
			case err != nil || got.Title != want:
				t.Errorf("%q: %v, %+v", id, err, got)
			}
			if _, err := s.Conversation(t.Context(), "tok_1", id); !errors.As(err, &none) || none.IsAmbiguous {
				t.Errorf("%q, asked for by another: %v", id, err)
			}
		}
	})
}

func TestTitleOf(t *testing.T) {
	t.Parallel()
	user, system := translate.RoleUser, translate.RoleSystem
	for name, tt := range map[string]struct {
		items []translate.Item
		want  string
	}{
		"a question":         {[]translate.Item{message(system, "Be brief."), message(user, "  What\n\tis   that? ")}, "What is that?"},
		"nothing":            {nil, ""},
		"no user":            {[]translate.Item{message(translate.RoleAssistant, "Hello")}, ""},
		"the second says it": {[]translate.Item{message(user, " "), message(user, "hi")}, "hi"},
		"long":               {[]translate.Item{message(user, strings.Repeat("ü ", 1e6))}, strings.Repeat("ü ", 39) + "ü…"},
		"escape sequences":   {[]translate.Item{message(user, "\x1b[31mred\u202e\x00")}, "[31mred"},
		"cut within a rune":  {[]translate.Item{message(user, strings.Repeat("x", longestRead-1)+"üü")}, strings.Repeat("x", 79) + "…"},
	} {
		if got := titleOf(tt.items); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestDeleteConversation(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		first := turn(nil, "first").withImage("a").at(1)
		next, branch := turn(first, "next").withImage("b").at(2), turn(first, "branch").at(3)
		other := turn(nil, "other").withImage("a").at(4)
		stored(t, s, first, next, branch, other)
		begun(t, s, turn(branch, "going on").at(5))
		for _, tt := range []struct{ owner, id string }{{"tok_1", first.ID}, {"", next.ID}, {"", "nothing"}, {"", "\x00"}} {
			if err := s.DeleteConversation(t.Context(), tt.owner, tt.id); !errors.As(err, new(*NoConversation)) {
				t.Errorf("%+v: %v", tt, err)
			}
		}
		if n := rows(t, s, "unfinished"); n != 1 {
			t.Errorf("another owner's attempt leaves %d turns in progress", n)
		}
		must(t, s.DeleteConversation(t.Context(), "", first.ID))
		sound(t, s)
		if turns, blobs, going := rows(t, s, "turns"), rows(t, s, "blobs"), rows(t, s, "unfinished"); turns != 1 || blobs != 1 || going != 0 {
			t.Errorf("%d turns, %d images and %d turns in progress are left", turns, blobs, going)
		}
		if got, _ := listed(t, s, "", Position{}, 9); !cmp.Equal(got, []string{"other"}) {
			t.Errorf("%q", got)
		}
	})
}

func TestDeleteConversations_OfAnOwnerBeforeATime(t *testing.T) {
	eachPlace(t, func(t *testing.T, at Options) {
		gone := map[string]bool{}
		at.Pruned = func(families []string) {
			for _, id := range families {
				gone[id] = true
			}
		}
		s := open(t, at)
		old, continued, young := turn(nil, "old").at(10), turn(nil, "continued").at(11), turn(nil, "young").at(30)
		other := turn(nil, "another's").at(5)
		other.Owner = "tok_1"
		stored(t, s, old, continued, young, other, turn(continued, "lately").at(31))
		long := turn(nil, "long").at(1)
		stored(t, s, long)
		for last, n := long, 0; n < pruneTurns+10; n++ {
			last = stored(t, s, turn(last, "more").at(2))
		}
		n, err := s.DeleteConversations(t.Context(), "", time.Unix(30, 0))
		if err != nil || n != 2 {
			t.Errorf("%d are deleted (%v), not 2", n, err)
		}
		if !gone[old.ID] || !gone[long.ID] || len(gone) != 2 {
			t.Errorf("these are told to be gone: %v", gone)
		}
		sound(t, s)
		if got, _ := listed(t, s, "", Position{}, 9); !cmp.Equal(got, []string{"continued", "young"}) {
			t.Errorf("%q are left", got)
		}
		if got, _ := listed(t, s, "tok_1", Position{}, 9); !cmp.Equal(got, []string{"another's"}) {
			t.Errorf("%q of another owner are left", got)
		}
	})
}
