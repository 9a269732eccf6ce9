package store

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFamilies(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Store) {
		first := stored(t, s, turn(nil, "first"))
		next := stored(t, s, turn(first, "next"))
		other, gone := stored(t, s, turn(nil, "other")), stored(t, s, turn(nil, "gone"))
		must(t, s.Delete(t.Context(), "", gone.ID))
		must(t, s.Delete(t.Context(), "", first.ID)) // its conversation goes on

		ids := []string{"nobody's", next.ID, "", "\x00", gone.ID}
		for i := range 2 * mostListed {
			ids = append(ids, strconv.Itoa(i))
		}
		found, err := s.Families(t.Context(), append(ids, other.ID, first.ID))
		slices.Sort(found)
		want := []string{first.ID, other.ID}
		slices.Sort(want)
		if err != nil || !slices.Equal(found, want) {
			t.Errorf("%v: %q, want %q", err, found, want)
		}
	})
}

func TestPrune_TellsWhatIsGone(t *testing.T) {
	eachPlace(t, func(t *testing.T, at Options) {
		var gone []string
		at.Pruned = func(families []string) { gone = append(gone, families...) }
		s := open(t, at)
		first := stored(t, s, turn(nil, "first"))
		stored(t, s, turn(first, "second"))
		other := stored(t, s, turn(nil, "other"))
		_, err := s.Prune(t.Context(), Bounds{Number: 1})
		must(t, err)
		if diff := cmp.Diff([]string{first.ID}, gone); diff != "" {
			t.Errorf("with %s left (-want +got):\n%s", other.ID, diff)
		}
	})
}
