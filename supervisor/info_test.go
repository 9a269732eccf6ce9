package supervisor

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestInfo_Devices(t *testing.T) {
	t.Parallel()
	shared := []process.Device{{Name: "MTL0", Memory: 8 << 30, Unified: true}, {Name: "BLAS", Unified: true}}
	buffers := []schedule.Allocation{{Buffer: "MTL0", Bytes: 500}, {Buffer: "CPU_Mapped", Bytes: 100}, {Buffer: "MTL0_Mapped", Bytes: 10}, {Buffer: "MTL01", Bytes: 1}, {Buffer: "BLAS", Bytes: 2}}
	for name, tt := range map[string]struct {
		info      Info
		allocated []schedule.Allocation
		want      []schedule.DeviceMemory
	}{
		"only a processor":        {Info{Memory: 900, Build: process.Build{Devices: []process.Device{}}}, buffers, []schedule.DeviceMemory{{Device: schedule.CPU, Bytes: 900}}},
		"it can't list them":      {Info{Memory: 900}, buffers, nil},
		"GPUs":                    {Info{Memory: 900, Instance: schedule.Instance{OnGPUs: []schedule.DeviceMemory{{Device: "CUDA0", Bytes: 510}, {Device: "CUDA1", Bytes: 40}}}}, nil, []schedule.DeviceMemory{{Device: schedule.CPU, Bytes: 350}, {Device: "CUDA0", Bytes: 510}, {Device: "CUDA1", Bytes: 40}}},
		"it shares the memory":    {Info{Memory: 900, Build: process.Build{Devices: shared}}, buffers, []schedule.DeviceMemory{{Device: schedule.CPU, Bytes: 390}, {Device: "MTL0", Bytes: 510}}},
		"more than is counted":    {Info{Memory: 90, Build: process.Build{Devices: shared}}, buffers[:1], []schedule.DeviceMemory{{Device: schedule.CPU, Bytes: 0}, {Device: "MTL0", Bytes: 500}}},
		"nothing is reported yet": {Info{Memory: 900, Build: process.Build{Devices: shared}}, nil, []schedule.DeviceMemory{{Device: schedule.CPU, Bytes: 900}}},
	} {
		tt.info.Applied.Allocations = tt.allocated
		if diff := cmp.Diff(tt.want, tt.info.Devices()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
