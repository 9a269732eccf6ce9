package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// GPUs with memory of their own are counted for themselves: the budget of the machine's memory has nothing of theirs.
func TestBudgets_CountEachDevice(t *testing.T) {
	t.Parallel()
	found := foundDevices{"llama_server": {DeviceReport: process.DeviceReport{Usable: []process.Device{
		{Name: "CUDA0", Memory: 8 << 30, Context: 5}, {Name: "CUDA1", Memory: 4 << 30}, {Name: "MTL0", Memory: 4 << 30, Unified: true},
	}}}}
	s := &Settings{MemoryBudget: Budget{Share: 0.5}, GPUMemory: GPUMemory{Each: Budget{Share: 0.25}, ByName: map[string]Budget{"CUDA1": {Bytes: 7}}}}
	want := []schedule.GPU{{Name: "CUDA0", Total: 8 << 30, Budget: 2 << 30, Context: 5}, {Name: "CUDA1", Total: 4 << 30, Budget: 7}}
	if diff := cmp.Diff(want, s.gpus(&found)); diff != "" {
		t.Error(diff)
	}
	if got, all := s.MemoryBudget.of(MachineMemory()), MachineMemory(); got != all/2 {
		t.Errorf("half of %d bytes is %d", all, got)
	}
	if got := (Budget{Bytes: 7}).of(100); got != 7 {
		t.Errorf("a size became %d", got)
	}
}
