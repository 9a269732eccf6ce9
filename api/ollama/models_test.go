package ollama

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestOllama_SizeVRAM(t *testing.T) {
	t.Parallel()
	for want, devices := range map[int64][]schedule.DeviceMemory{
		0: nil, 7: {{Device: schedule.CPU, Bytes: 5}, {Device: "CUDA0", Bytes: 3}, {Device: "CUDA1", Bytes: 4}},
	} {
		if got := outsideCPU(devices); got != want {
			t.Errorf("%v: %d, want %d", devices, got, want)
		}
	}
}
