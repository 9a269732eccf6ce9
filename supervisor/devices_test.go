package supervisor

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInfo_Devices(t *testing.T) {
	t.Parallel()
	shared := []Device{{Name: "MTL0", Memory: 8 << 30, Unified: true}, {Name: "BLAS", Unified: true}}
	buffers := []Allocation{{"MTL0", 500}, {"CPU_Mapped", 100}, {"MTL0_Mapped", 10}, {"MTL01", 1}, {"BLAS", 2}}
	for name, tt := range map[string]struct {
		info      Info
		allocated []Allocation
		want      []DeviceMemory
	}{
		"only a processor":        {Info{Memory: 900, Build: Build{Devices: []Device{}}}, buffers, []DeviceMemory{{CPU, 900}}},
		"it can't list them":      {Info{Memory: 900}, buffers, nil},
		"GPUs":                    {Info{Memory: 900, OnGPUs: []DeviceMemory{{"CUDA0", 510}, {"CUDA1", 40}}}, nil, []DeviceMemory{{CPU, 350}, {"CUDA0", 510}, {"CUDA1", 40}}},
		"it shares the memory":    {Info{Memory: 900, Build: Build{Devices: shared}}, buffers, []DeviceMemory{{CPU, 390}, {"MTL0", 510}}},
		"more than is counted":    {Info{Memory: 90, Build: Build{Devices: shared}}, buffers[:1], []DeviceMemory{{CPU, 0}, {"MTL0", 500}}},
		"nothing is reported yet": {Info{Memory: 900, Build: Build{Devices: shared}}, nil, []DeviceMemory{{CPU, 900}}},
	} {
		for _, a := range tt.allocated {
			tt.info.applied.allocated(Signal{Text: a.Buffer, Bytes: a.Bytes})
		}
		if diff := cmp.Diff(tt.want, tt.info.Devices()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

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
