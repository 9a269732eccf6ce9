package histogram

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	h := New([]float64{0.5, 1, 2})
	for _, size := range []float64{0, 0.5, 0.6, 1, 2.1, 99} {
		h.Observe(size)
	}
	h.ObserveTime(1500 * time.Millisecond)
	before := h.Clone()
	h.Add(before)
	count, within := before.Cumulative()
	if diff := cmp.Diff(map[float64]uint64{0.5: 2, 1: 4, 2: 5}, within); diff != "" || count != 7 {
		t.Errorf("%d (-want +got):\n%s", count, diff)
	}
	if count, within := h.Cumulative(); count != 14 || within[2] != 10 || h.Sum != 2*before.Sum {
		t.Errorf("%d %v %v", count, within, h.Sum)
	}
	if want := 0.5 + 0.6 + 1 + 2.1 + 99 + 1.5; before.Sum != want {
		t.Errorf("sum %v, want %v", before.Sum, want)
	}
}

func TestHistogram_ObserveAllocatesNothing(t *testing.T) {
	h := New(Waits)
	if n := testing.AllocsPerRun(100, func() { h.Observe(3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
