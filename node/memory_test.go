package node

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

func TestBudget_CountsTheMemoryOfDevicesThatHaveTheirOwn(t *testing.T) {
	t.Parallel()
	n := open(t, home.Dir(t.TempDir()))
	half := Budget{Share: 0.5}
	machine := n.budgetOf(half)
	if machine <= 0 {
		t.Fatalf("half of the machine's memory is %d bytes", machine)
	}
	n.devices.Store(&[]supervisor.Device{{Name: "CUDA0", Memory: 8 << 30}, {Name: "MTL0", Memory: 4 << 30, Unified: true}})
	if got := n.budgetOf(half) - machine; got != 4<<30 {
		t.Errorf("the devices add %d bytes, want half of those of the one with its own", got)
	}
	if got := n.budgetOf(Budget{Bytes: 7}); got != 7 {
		t.Errorf("a size became %d", got)
	}
}
