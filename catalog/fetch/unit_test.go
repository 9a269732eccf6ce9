package fetch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSpans_AreWhatABitmapSays, whatever is added in any order.
func TestSpans_AreWhatABitmapSays(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		const size = 40
		var s spans
		var bits [size]bool
		for range random.IntN(15) {
			n := span{random.Int64N(size), random.Int64N(size + 1)}
			s = s.add(n)
			for i := n.From; i < n.To; i++ {
				bits[i] = true
			}
		}
		var want spans
		for i, set := range bits {
			if set {
				want = append(want, span{int64(i), int64(i) + 1})
			}
		}
		want = slices.Collect(joined(want))
		if diff := cmp.Diff(want, s); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		gap := s.gap(size)
		first := slices.Index(bits[:], false)
		if first < 0 {
			first = size
		}
		if gap.From != int64(first) || gap.To < gap.From || first < size && bits[gap.To-1] {
			t.Fatalf("of %v the gap is %v", s, gap)
		}
		if got := s.within(size); !slices.Equal(got, s) {
			t.Fatalf("%v is read as %v", s, got)
		}
	}
}

// joined joins adjacent spans.
func joined(all spans) func(func(span) bool) {
	return func(yield func(span) bool) {
		for i := 0; i < len(all); {
			j := i + 1
			for j < len(all) && all[j].From == all[j-1].To {
				j++
			}
			if !yield(span{all[i].From, all[j-1].To}) {
				return
			}
			i = j
		}
	}
}

func TestRate_IsOfTheLastSeconds(t *testing.T) {
	t.Parallel()
	var r rate
	now := time.Unix(1000, 0)
	if got := r.perSecond(now); got != 0 {
		t.Errorf("before the start: %v", got)
	}
	r.start(now)
	near := func(want float64) {
		t.Helper()
		if got := r.perSecond(now); got < want*0.9 || got > want*1.1 {
			t.Errorf("%.0f bytes per second, want %.0f", got, want)
		}
	}
	for range 100 { // ten seconds of 1000 bytes each
		now = now.Add(100 * time.Millisecond)
		r.add(100, now)
		near(1000)
	}
	for range 100 { // ten seconds of twice that
		now = now.Add(100 * time.Millisecond)
		r.add(200, now)
	}
	near(2000)
	now = now.Add(rateWindow / 2)
	near(1000)
	now = now.Add(rateWindow)
	if got := r.perSecond(now); got != 0 {
		t.Errorf("after the end: %v", got)
	}
	now = now.Add(time.Hour)
	r.add(1000, now)
	if got := r.perSecond(now); got > 1000 {
		t.Errorf("after an hour: %v", got)
	}
}

func TestContentRange(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][3]int64{"bytes 0-9/10": {0, 10, 10}, "bytes 5-5/*": {5, 6, -1}} {
		from, to, total, ok := contentRange(value)
		if !ok || [3]int64{from, to, total} != want {
			t.Errorf("%q: %d, %d, %d, %v", value, from, to, total, ok)
		}
	}
	for _, value := range []string{"", "bytes */10", "bytes 1-2", "bits 0-9/10", "bytes 0-9/10 ", "bytes 0-99999999999999999999/5"} {
		if _, _, _, ok := contentRange(value); ok {
			t.Errorf("%q is read", value)
		}
	}
}

// TestRetry_AfterProgressWaitsASecondAtMost, which the API promises.
func TestRetry_AfterProgressWaitsASecondAtMost(t *testing.T) {
	t.Parallel()
	if standard.FirstRetry > time.Second {
		t.Errorf("it waits %v", standard.FirstRetry)
	}
}
