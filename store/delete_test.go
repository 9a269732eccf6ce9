package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDelete_KeepsWhatOthersContinue(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		root := turn(nil, "root").withImage("image")
		middle := turn(root, "middle").withImage("image").withImage("another")
		left, right := turn(middle, "left"), turn(middle, "right").withImage("another")
		stored(t, s, root, middle, left, right, turn(nil, "unrelated").withImage("image"))
		for _, step := range []struct {
			delete       *Turn
			turns, blobs int // that are left
		}{
			{middle, 5, 2}, // hidden
			{root, 5, 2},   // hidden as well
			{left, 4, 2},
			{right, 1, 1}, // and with it the hidden ones
		} {
			must(t, s.Delete(t.Context(), "", step.delete.ID))
			for name, err := range map[string]error{
				"Get":    second(s.Get(t.Context(), "", step.delete.ID)),
				"Chain":  second(s.Chain(t.Context(), "", step.delete.ID)),
				"Put":    s.Put(t.Context(), turn(step.delete, "x")),
				"Delete": s.Delete(t.Context(), "", step.delete.ID),
			} {
				if diff := cmp.Diff(error(&NotFound{step.delete.ID}), err); diff != "" {
					t.Errorf("%s after Delete: %s", name, diff)
				}
			}
			if n := rows(t, s, "turns"); n != step.turns {
				t.Errorf("%d turns are left, not %d", n, step.turns)
			}
			if n := rows(t, s, "blobs"); n != step.blobs {
				t.Errorf("%d images are left, not %d", n, step.blobs)
			}
			sound(t, s)
			if step.turns > 3 {
				want := []string{"root", "middle", "right"}
				if diff := cmp.Diff(want, texts(t, s, "", right.ID)); diff != "" {
					t.Error(diff)
				}
			}
		}
		if n := rows(t, s, "families"); n != 1 {
			t.Errorf("%d families are left", n)
		}
	})
}

func TestDelete_ALeafLeavesTheRest(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		root := turn(nil, "root")
		leaf := stored(t, s, root, turn(root, "leaf"))
		must(t, s.Delete(t.Context(), "", leaf.ID))
		if diff := cmp.Diff([]string{"root"}, texts(t, s, "", root.ID)); diff != "" {
			t.Error(diff)
		}
		sound(t, s)
	})
}

// TestDelete_WhileOthersContinue deletes, continues and prunes turns concurrently.
func TestDelete_WhileOthersContinue(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		for round := range 20 {
			root := stored(t, s, turn(nil, "root").withImage("a").withImage("b"))
			middle := stored(t, s, turn(root, "middle").withImage("b"))
			var all sync.WaitGroup
			tolerate := func(what string, err error) {
				if err != nil && !errors.As(err, new(*NotFound)) {
					t.Errorf("round %d, %s: %v", round, what, err)
				}
			}
			for n := range 5 {
				all.Go(func() {
					leaf := turn(middle, fmt.Sprint(n)).withImage("a").withImage("b")
					tolerate("Put", s.Put(t.Context(), leaf))
					tolerate("Delete of a leaf", s.Delete(t.Context(), "", leaf.ID))
				})
			}
			all.Go(func() { tolerate("Delete of the middle", s.Delete(t.Context(), "", middle.ID)) })
			all.Go(func() { tolerate("Delete of the root", s.Delete(t.Context(), "", root.ID)) })
			all.Go(func() { tolerate("Prune", second(s.Prune(t.Context(), Bounds{Number: 3}))) })
			all.Go(func() { tolerate("Chain", second(s.Chain(t.Context(), "", middle.ID))) })
			all.Wait()
			sound(t, s)
		}
	})
}
