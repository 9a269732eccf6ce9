package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

func TestPut_GivesBackWhatWasStored(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		first := turn(nil, "what is this?").withImage("\x89PNG\x00").withImage("another").withImage("another")
		first.Owner, first.Status = "tok_1", Incomplete
		first.Created = time.Now().Add(-time.Hour)
		first.Request = json.RawMessage(`{"system_prompt":"\u0000 is allowed here"}`)
		first.Usage = translate.Usage{Prompt: 10, Cached: 5, Completion: 7, Reasoning: 3}
		first.Out = append(first.Out, translate.Item{
			ID: "fc_1", Kind: translate.ItemCall, CallID: "call_1", Tool: "look", Provider: &translate.Provider{Server: "eyes"},
			Args: json.RawMessage(`{"at":"it"}`), Raw: json.RawMessage(`[1]`),
		})
		second := turn(first, "and now?")
		stored(t, s, first, second)
		if first.Family != first.ID || second.Family != first.ID || second.Created.IsZero() {
			t.Errorf("Put filled in %q, %q and %v", first.Family, second.Family, second.Created)
		}
		if hash := first.In[0].Parts[1].Media.Hash; hash != "" {
			t.Errorf("Put has changed the caller's image: %q", hash)
		}
		got, err := s.Chain(t.Context(), "tok_1", second.ID)
		must(t, err)
		want := []*Turn{first, second}
		media(first, func(i *translate.Media) { i.Hash = hashOf(i.Data) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		one, err := s.Get(t.Context(), "tok_1", first.ID)
		must(t, err)
		if diff := cmp.Diff(first, one); diff != "" {
			t.Error(diff)
		}
		sound(t, s)
	})
}

func hashOf(data []byte) string {
	var blobs []blob
	items := []translate.Item{{Parts: []translate.Part{{Media: &translate.Media{Data: data}}}}}
	_, _ = hashed(items, &blobs)
	return blobs[0].hash
}

func TestPut_Refuses(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		first := turn(nil, "first")
		first.Owner = "tok_1"
		deleted := turn(nil, "deleted")
		hidden := turn(nil, "hidden")
		stored(t, s, first, deleted, hidden, turn(hidden, "continues it"))
		must(t, s.Delete(t.Context(), "", deleted.ID))
		must(t, s.Delete(t.Context(), "", hidden.ID))
		unknown := turn(nil, "never stored")
		before := rows(t, s, "turns")

		for name, c := range map[string]struct {
			turn *Turn
			edit func(*Turn)
			want error
		}{
			"an unknown parent":        {turn(unknown, "x"), nil, &NotFound{unknown.ID}},
			"a parent that no id is":   {turn(&Turn{ID: "a\x00b"}, "x"), nil, &NotFound{"a\x00b"}},
			"a deleted parent":         {turn(deleted, "x"), nil, &NotFound{deleted.ID}},
			"a hidden parent":          {turn(hidden, "x"), nil, &NotFound{hidden.ID}},
			"another owner's parent":   {turn(first, "x"), func(t *Turn) { t.Owner = "tok_2" }, &NotFound{first.ID}},
			"an owner's by nobody":     {turn(first, "x"), func(t *Turn) { t.Owner = "" }, &NotFound{first.ID}},
			"an id that is taken":      {turn(nil, "x"), func(t *Turn) { t.ID = first.ID }, &Exists{first.ID}},
			"another owner's id":       {turn(nil, "first"), func(t *Turn) { t.ID = first.ID }, &Exists{first.ID}},
			"a hidden id":              {turn(nil, "hidden"), func(t *Turn) { t.ID = hidden.ID }, &Exists{hidden.ID}},
			"a next one's id is taken": {turn(first, "x"), func(t *Turn) { t.ID = hidden.ID }, &Exists{hidden.ID}},
		} {
			if c.edit != nil {
				c.edit(c.turn)
			}
			if diff := cmp.Diff(c.want, s.Put(t.Context(), c.turn)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		for name, edit := range map[string]func(*Turn){
			"no id":             func(t *Turn) { t.ID = "" },
			"its own parent":    func(t *Turn) { t.Parent = t.ID },
			"no status":         func(t *Turn) { t.Status = "" },
			"bad JSON":          func(t *Turn) { t.Request = json.RawMessage(`{`) },
			"an empty image":    func(t *Turn) { t.withImage("") },
			"an image's hash":   func(t *Turn) { t.withImage("").In[0].Parts[1].Media.Hash = hashOf([]byte("x")) },
			"an owner with a 0": func(t *Turn) { t.Owner = "\x00" },
			"a model with a 0":  func(t *Turn) { t.Model = "\x00" },
			"before 1970":       func(t *Turn) { t.Created = time.Unix(-1, 0) },
			"when 1970 began":   func(t *Turn) { t.Created = time.Unix(0, 0) }, // a family of that age is one that is being removed
		} {
			bad := turn(nil, "x")
			edit(bad)
			if err := s.Put(t.Context(), bad); !errors.As(err, new(*Invalid)) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after := rows(t, s, "turns"); after != before {
			t.Errorf("%d turns have been added", after-before)
		}
		sound(t, s)
	})
}

func TestPut_AgainChangesNothing(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		first := turn(nil, "first").withImage("x")
		second := turn(first, "second").withImage("x")
		stored(t, s, first, second)
		for range 2 {
			again := *second
			again.Family, again.Created = "", time.Time{}
			must(t, s.Put(t.Context(), &again))
			if again.Family != first.ID || !again.Created.Equal(second.Created) {
				t.Errorf("got family %q, created %v; want %q, %v", again.Family, again.Created, first.ID, second.Created)
			}
			again = *first
			must(t, s.Put(t.Context(), &again))
		}
		if n := rows(t, s, "turns"); n != 2 {
			t.Errorf("%d turns", n)
		}
		sound(t, s)
	})
}

// TestPut_Concurrent stores turns concurrently. Some are invalid, and some contexts end.
func TestPut_Concurrent(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		root := stored(t, s, turn(nil, "root").withImage("shared"))
		var all sync.WaitGroup
		for n := range 200 {
			all.Go(func() {
				next := turn(root, fmt.Sprint(n)).withImage("shared").withImage(fmt.Sprint(n % 3))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				switch n % 5 {
				case 0:
					next.Parent = "resp_unknown"
				case 1:
					go cancel()
				case 2:
					next = turn(nil, fmt.Sprint(n)).withImage("shared")
				}
				err := s.Put(ctx, next)
				_, missing := s.Get(t.Context(), "", next.ID)
				switch wanted := err; {
				case n%5 == 0 && !errors.As(err, new(*NotFound)):
					t.Errorf("a turn without a parent: %v", err)
				case n%5 == 1 && errors.Is(err, context.Canceled):
				case n%5 != 0 && wanted != nil:
					t.Errorf("turn %d: %v", n, err)
				}
				if (err == nil) != (missing == nil) {
					t.Errorf("Put gave %v, but then Get %v", err, missing)
				}
			})
		}
		all.Wait()
		sound(t, s)
	})
}

func TestPut_Depth(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		last := stored(t, s, turn(nil, "deep"))
		// Simulate MaxDepth-1 turns before it.
		must(t, s.write(t.Context(), 0, func(t *tx) error {
			_, err := t.exec("UPDATE turns SET depth = $1", MaxDepth-2)
			return err
		}))
		last = stored(t, s, turn(last, "the last"))
		if diff := cmp.Diff(error(&TooDeep{last.ID}), s.Put(t.Context(), turn(last, "too many"))); diff != "" {
			t.Error(diff)
		}
		if _, err := s.Chain(t.Context(), "", last.ID); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("a chain without its beginning: %v", err)
		}
	})
}

func TestClose_EndsEverything(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		first := stored(t, s, turn(nil, "first"))
		must(t, s.Close())
		must(t, s.Close())
		for name, err := range map[string]error{
			"Put":    s.Put(t.Context(), turn(nil, "x")),
			"Delete": s.Delete(t.Context(), "", first.ID),
			"Get":    second(s.Get(t.Context(), "", first.ID)),
			"Chain":  second(s.Chain(t.Context(), "", first.ID)),
			"Prune":  second(s.Prune(t.Context(), Bounds{Number: 1})),
		} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s gives %v", name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
