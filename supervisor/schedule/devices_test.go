package schedule

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// However many names an engine makes up, a bounded number of them is kept, and no byte is lost. A copy isn't changed by what follows.
func TestApplied_Allocated(t *testing.T) {
	t.Parallel()
	var a Applied
	a.allocated(Signal{Text: "one", Bytes: 1})
	before := a
	for i := range 10 * mostAllocations {
		a.allocated(Signal{Text: fmt.Sprint("CUDA", i), Bytes: 1})
		a.allocated(Signal{Text: "one", Bytes: 1})
	}
	sum := int64(0)
	for _, one := range a.Allocations {
		sum += one.Bytes
	}
	if len(a.Allocations) != mostAllocations || sum != a.Buffers || a.Buffers != 20*mostAllocations+1 {
		t.Errorf("%d names, %d of %d bytes", len(a.Allocations), sum, a.Buffers)
	}
	if diff := cmp.Diff([]Allocation{{"one", 1}}, before.Allocations); diff != "" {
		t.Error(diff)
	}
}
