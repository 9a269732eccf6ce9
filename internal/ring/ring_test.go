package ring

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRing_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		most  int
		bytes int64
		sizes []int
		from  uint64
		want  []int
		lost  uint64
	}{
		"nothing":                       {3, 100, nil, 0, nil, 0},
		"all":                           {3, 100, []int{1, 1, 1}, 0, []int{0, 1, 2}, 0},
		"by number":                     {3, 100, []int{1, 1, 1, 1, 1}, 0, []int{2, 3, 4}, 2},
		"by size":                       {9, 10, []int{4, 4, 4, 4}, 1, []int{2, 3}, 1},
		"a large one":                   {9, 10, []int{4, 4, 400}, 0, []int{2}, 2},
		"after a large one":             {9, 10, []int{400, 4, 4}, 0, []int{1, 2}, 1},
		"those after a position":        {9, 100, []int{1, 1, 1, 1}, 2, []int{2, 3}, 0},
		"none since":                    {9, 100, []int{1, 1}, 2, nil, 0},
		"a position that is not yet":    {9, 100, []int{1, 1}, 7, nil, 0},
		"many more than fit":            {2, 100, make([]int, 1000), 990, []int{998, 999}, 8},
		"a position among those kept":   {4, 100, make([]int, 11), 9, []int{9, 10}, 0},
		"a position just after evicted": {4, 100, make([]int, 11), 7, []int{7, 8, 9, 10}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New[int](tt.most, tt.bytes)
			for i, size := range tt.sizes {
				if at := r.Add(i, size); at != uint64(i) {
					t.Errorf("the position of %d is %d", i, at)
				}
			}
			got, next, lost := r.From(tt.from, math.MaxInt)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if next != uint64(len(tt.sizes)) || lost != tt.lost {
				t.Errorf("next %d, lost %d, want %d", next, lost, tt.lost)
			}
		})
	}
}

// A reader that asks for the channel first misses nothing, however the two interleave.
func TestRing_Changed(t *testing.T) {
	t.Parallel()
	const all = 5000
	r := New[int](2*all, 1<<40)
	go func() {
		for i := range all {
			r.Add(i, 1)
		}
	}()
	var position uint64
	for seen := 0; seen < all; {
		changed := r.Changed()
		values, next, lost := r.From(position, math.MaxInt)
		for _, v := range values {
			if v != seen {
				t.Fatalf("%d comes after %d", v, seen-1)
			}
			seen++
		}
		if position = next; lost > 0 {
			t.Fatalf("%d were lost", lost)
		}
		if len(values) == 0 {
			<-changed
		}
	}
}
