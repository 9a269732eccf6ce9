package node

import (
	"context"
	"errors"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	m := catalog.Memory{Weights: 40 * gib, KVCache: 8 * gib, Compute: gib, Projector: 2 * gib}
	for name, tt := range map[string]struct {
		free            map[string]int64
		here, elsewhere int64
	}{
		"nothing is known":       {nil, 3 * gib, 50 * gib},
		"one is unknown":         {map[string]int64{"x:1": 10 * gib}, 3 * gib, 50 * gib},
		"enough":                 {map[string]int64{"x:1": 30 * gib, "y:1": 30 * gib}, 3 * gib, 50 * gib},
		"too little":             {map[string]int64{"x:1": 12 * gib, "y:1": 22 * gib}, 21 * gib, 32 * gib},
		"one that has no room":   {map[string]int64{"x:1": gib / 2, "y:1": 22 * gib}, 31 * gib, 22 * gib},
		"none that has any room": {map[string]int64{"x:1": 1, "y:1": gib}, 51 * gib, 0},
	} {
		n := new(Node)
		for address, free := range tt.free {
			n.workers.Store(address, workerState{memory: supervisor.WorkerMemory{Total: 64 * gib, Free: free}})
		}
		here, elsewhere := n.spread(&supervisor.Spec{RPC: []string{"x:1", "y:1"}}, m)
		if here != tt.here || elsewhere != tt.elsewhere {
			t.Errorf("%s: %d GiB here, %d GiB on workers; want %d and %d", name, here/gib, elsewhere/gib, tt.here/gib, tt.elsewhere/gib)
		}
	}
	if here, elsewhere := new(Node).spread(&supervisor.Spec{}, m); here != m.Total() || elsewhere != 0 {
		t.Errorf("without workers: %d and %d", here, elsewhere)
	}
}

// asked is a process that is asked for workers.
type asked struct {
	supervisor.Process
	answers map[string]error
	count   chan string
}

func (a asked) AskWorker(_ context.Context, address string) (supervisor.WorkerMemory, error) {
	a.count <- address
	return supervisor.WorkerMemory{Total: 2, Free: 1}, a.answers[address]
}

func TestAskWorkers_OnceInAWhile(t *testing.T) {
	t.Parallel()
	n := open(t, home.Dir(t.TempDir()))
	a := asked{answers: map[string]error{"y:1": errors.New("it is away")}, count: make(chan string, 9)}
	e := &engine{Engine: Engine{Engine: supervisor.Engine{Workers: true}}, process: a}
	for range 3 {
		n.askWorkers(t.Context(), e, []string{"x:1", "y:1"})
	}
	if len(a.count) != 2 {
		t.Errorf("they were asked %d times", len(a.count))
	}
	f := n.forecastWorkers(&supervisor.Spec{RPC: []string{"x:1", "y:1", "z:1"}})
	if f[0].Total != 2 || f[0].Free != 1 || f[0].Problem != "" || f[1].Problem != "it is away" || f[2] != (WorkerForecast{Address: "z:1"}) {
		t.Errorf("%+v", f)
	}
}
