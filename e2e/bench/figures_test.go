package bench

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFiguresOf(t *testing.T) {
	t.Parallel()
	s := sample{took: 2 * time.Second, cpu: time.Second, resident: 7}
	for i := 200; i > 0; i-- { // in reverse order
		s.latencies = append(s.latencies, time.Duration(i)*time.Millisecond)
	}
	want := figures{p50: 0.101, p99: 0.199, rate: 100, cpu: 0.005, resident: 7}
	if diff := cmp.Diff(want, figuresOf(s, workload{events: 8}), cmp.AllowUnexported(figures{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.cpu = 0.02 // for each 1,000 chunks; a request has 250
	if diff := cmp.Diff(want, figuresOf(s, workload{events: 250, isLong: true}), cmp.AllowUnexported(figures{})); diff != "" {
		t.Errorf("a long stream (-want +got):\n%s", diff)
	}
}

// A disturbance of a whole round affects the medians, but not the ratio.
func TestSeries_RatioIsOfEachRound(t *testing.T) {
	t.Parallel()
	a := series{{p50: 2}, {p50: 20}, {p50: 4}}
	b := series{{p50: 1}, {p50: 10}, {p50: 2}}
	if got := a.ratio(b, p50); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
	if got := a.median(p50); got != 4 {
		t.Errorf("median %v, want 4", got)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		got verdict
		met bool
	}{
		"no more": {atMost("", 1.5, 1.5), true},
		"more":    {atMost("", 1.501, 1.5), false},
		"no less": {atLeast("", 1, 1), true},
		"less":    {atLeast("", 0.999, 1), false},
	} {
		if tt.got.met != tt.met {
			t.Errorf("%s: met is %t", name, tt.got.met)
		}
	}
}

func TestNumberIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{`{"a":1,"n":12,"b":3}`: 12, `{"n":7}`: 7, `{"m":7}`: 0, `{"n":"7"}`: 0, `{"n":`: 0} {
		if got := numberIn([]byte(text), `"n":`); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
