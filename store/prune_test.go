package store

import (
	"math"
	"strconv"
	"testing"
	"time"
)

func TestPrune_Age(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		aged := func(parent *Turn, age time.Duration) *Turn {
			made := turn(parent, age.String()).withImage(age.String())
			made.Created = time.Now().Add(-age)
			return made
		}
		old := aged(nil, 3*time.Hour)
		continued := aged(nil, 4*time.Hour)
		young := aged(nil, time.Minute)
		stored(t, s, old, aged(old, 2*time.Hour), continued, aged(continued, time.Minute), young)

		removed, err := s.Prune(t.Context(), Bounds{Age: time.Hour})
		if err != nil || removed != 2 {
			t.Errorf("removed %d (%v), not 2", removed, err)
		}
		for _, c := range []struct {
			turn *Turn
			left bool
		}{{old, false}, {continued, true}, {young, true}} {
			if _, err := s.Get(t.Context(), "", c.turn.ID); (err == nil) != c.left {
				t.Errorf("the conversation of %s: %v", c.turn.In[0].Parts[0].Text, err)
			}
		}
		if n := rows(t, s, "blobs"); n != 2 {
			t.Errorf("%d images are left", n)
		}
		sound(t, s)
	})
}

func TestPrune_Number(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		crowd(t, s, 1000) // in conversations of ten
		for _, c := range []struct{ number, left int }{{0, 1000}, {1000, 1000}, {999, 990}, {234, 230}, {230, 230}, {5, 0}} {
			before := rows(t, s, "turns")
			removed, err := s.Prune(t.Context(), Bounds{Number: c.number})
			must(t, err)
			left := rows(t, s, "turns")
			if left != c.left || removed != before-left {
				t.Errorf("number %d leaves %d turns, not %d, and says that it removed %d of %d", c.number, left, c.left, removed, before)
			}
			if oldest := rows(t, s, "turns WHERE created <= 1000 - "+strconv.Itoa(c.left)); oldest != 0 {
				t.Errorf("number %d leaves %d of the oldest", c.number, oldest)
			}
			sound(t, s)
		}
	})
}

// TestPrune_AgeAndNumber: both bounds apply.
func TestPrune_AgeAndNumber(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		old := turn(nil, "old")
		old.Created = time.Now().Add(-2 * time.Hour)
		first, last := turn(nil, "first"), turn(nil, "last")
		first.Created = time.Now().Add(-time.Minute)
		stored(t, s, old, first, last)
		removed, err := s.Prune(t.Context(), Bounds{Age: time.Hour, Number: 1})
		if err != nil || removed != 2 {
			t.Errorf("removed %d (%v), not 2", removed, err)
		}
		must(t, second(s.Get(t.Context(), "", last.ID)))
		sound(t, s)
	})
}

// putFamily stores a conversation of n turns, all but the first of which are branches.
func putFamily(t *testing.T, s *Store, n int) {
	t.Helper()
	root := turn(nil, "root")
	must(t, s.write(t.Context(), 0, func(tx *tx) error {
		for i := range n {
			next := root
			if i > 0 {
				next = turn(root, "a branch")
			}
			p, err := prepare(next)
			if err == nil {
				err = p.run(tx)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestPrune_LargeFamily: a conversation that is too large for one piece is removed as a whole.
func TestPrune_LargeFamily(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		putFamily(t, s, 2*pruneTurns+2)
		stored(t, s, turn(nil, "a newer one"))
		removed, err := s.Prune(t.Context(), Bounds{Number: 2 * pruneTurns})
		if err != nil || removed != 2*pruneTurns+2 {
			t.Errorf("removed %d (%v)", removed, err)
		}
		if n := rows(t, s, "turns"); n != 1 {
			t.Errorf("%d turns are left", n)
		}
		sound(t, s)
	})
}

// TestPrune_Pieces: no transaction removes more than pruneTurns turns, however they are spread over conversations.
func TestPrune_Pieces(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		const half = pruneTurns / 2
		for name, c := range map[string]struct{ families, removed []int }{
			"two that fit together":   {[]int{half, half}, []int{pruneTurns, 0}},
			"two that don't":          {[]int{half, half + 1}, []int{half, half + 1, 0}},
			"one that just fits":      {[]int{pruneTurns}, []int{pruneTurns, 0}},
			"one that doesn't":        {[]int{pruneTurns + 1}, []int{pruneTurns, 1, 0}},
			"one that doesn't, first": {[]int{pruneTurns + 1, 1}, []int{pruneTurns, 2, 0}},
		} {
			for _, n := range c.families {
				putFamily(t, s, n)
			}
			for i, want := range c.removed {
				_, removed, err := s.prunePiece(t.Context(), piece{before: math.MaxInt64, most: 2 * pruneTurns})
				must(t, err)
				if removed != want {
					t.Errorf("%s: piece %d removes %d turns, not %d", name, i, removed, want)
				}
			}
			if n := rows(t, s, "families"); n != 0 {
				t.Fatalf("%s: %d conversations are left", name, n)
			}
			sound(t, s)
		}
	})
}

func TestPrune_Refuses(t *testing.T) {
	t.Parallel()
	s := open(t, backends[0].at(t))
	for _, b := range []Bounds{{Age: -1}, {Number: -1}} {
		if _, err := s.Prune(t.Context(), b); err == nil {
			t.Errorf("%+v is no error", b)
		}
	}
}
