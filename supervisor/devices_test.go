package supervisor

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInfo_Devices(t *testing.T) {
	t.Parallel()
	gpus := []Device{{Name: "CUDA0", Memory: 8 << 30}, {Name: "CUDA1", Memory: 8 << 30}, {Name: "BLAS"}}
	buffers := []Allocation{{"CPU_Mapped", "", 100}, {"CUDA0", "", 500}, {"CUDA_Host", "", 30}, {"CUDA1", "", 40}, {"CUDA0", "", 7}, {"CUDA0_Split", "", 3}, {"CUDA01", "", 1}, {"", "", 2}, {"CUDA0", "10.0.0.3:1", 1000}}
	loaded := time.Now()
	for name, tt := range map[string]struct {
		info      Info
		allocated []Allocation
		want      []DeviceMemory
	}{
		"only a processor":        {Info{Memory: 900, Build: Build{Devices: []Device{}}}, buffers, []DeviceMemory{{CPU, 900}}},
		"it can't list them":      {Info{Memory: 900, LoadedAt: loaded}, buffers, nil},
		"not launched yet":        {Info{Memory: 900}, nil, nil},
		"GPUs":                    {Info{Memory: 900, LoadedAt: loaded, Build: Build{Devices: gpus}}, buffers, []DeviceMemory{{CPU, 350}, {"CUDA0", 510}, {"CUDA1", 40}}},
		"GPUs, while it loads":    {Info{Memory: 900, Build: Build{Devices: gpus}}, buffers, nil},
		"GPUs, nothing reported":  {Info{Memory: 900, LoadedAt: loaded, Build: Build{Devices: gpus}}, nil, nil},
		"a library on processors": {Info{Memory: 900, Build: Build{Devices: gpus[2:]}}, nil, []DeviceMemory{{CPU, 900}}},
		"more than is counted":    {Info{Memory: 90, LoadedAt: loaded, Build: Build{Devices: gpus}}, buffers[1:2], []DeviceMemory{{CPU, 0}, {"CUDA0", 500}}},
	} {
		for _, a := range tt.allocated {
			tt.info.applied.allocated(Signal{Text: a.Buffer, Worker: a.Worker, Bytes: a.Bytes})
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
	if diff := cmp.Diff([]Allocation{{"one", "", 1}}, before.Allocations); diff != "" {
		t.Error(diff)
	}
}
