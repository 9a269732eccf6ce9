package caddymodule

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// noon is when the reports of the tests are made.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func specOf(key string, change func(*schedule.Spec)) *schedule.Spec {
	s := &schedule.Spec{Model: catalog.Model{Key: key}, ContextLength: 8192, Parallel: 4, TTL: time.Hour}
	if change != nil {
		change(s)
	}
	return s
}

// everything is an overview that has one of everything in it.
func everything() supervisor.Overview {
	build := process.Build{Engine: "llama.cpp", Version: "b11669"}
	return supervisor.Overview{
		Limits: schedule.Limits{Instances: 8, Memory: 27 << 30, Queue: 512},
		GPUs:   []supervisor.GPUUse{{GPU: schedule.GPU{Name: "CUDA0", Total: 24 << 30, Budget: 20 << 30}, Held: 2 << 30}},
		Instances: []supervisor.Info{
			{
				Instance: schedule.Instance{
					ID: "a/idle", Spec: specOf("a/idle", nil), Status: schedule.Ready, LoadTime: 1500 * time.Millisecond, LastUsed: noon.Add(-10 * time.Second), OnGPUs: []schedule.DeviceMemory{{Device: "CUDA0", Bytes: 3 << 30}}, Resident: 1 << 30,
				},
				LoadedAt: noon.Add(-2 * time.Hour), Expires: noon.Add(time.Hour - 10*time.Second), Memory: 4 << 30, PID: 101, Address: "127.0.0.1:4001", Build: build,
			},
			{
				Instance: schedule.Instance{
					ID: "a/idle:2", Spec: specOf("a/idle", func(s *schedule.Spec) { s.TTL, s.Pinned = 0, true }), Status: schedule.Ready, InUse: 3, LoadTime: time.Second, LastUsed: noon.Add(-5 * time.Second), Resident: 1 << 30,
				},
				LoadedAt: noon.Add(-time.Minute), Memory: 4 << 30, PID: 102, Address: "127.0.0.1:4002", Build: build,
			},
			{
				Instance: schedule.Instance{
					ID: "b/busy", Spec: specOf("b/busy", func(s *schedule.Spec) { s.Draft = &catalog.Model{Key: "b/draft"} }), Status: schedule.Ready, InUse: 1, Next: specOf("b/busy", nil), LoadTime: time.Second, LastUsed: noon.Add(-5 * time.Second), Resident: 2 << 30,
				},
				LoadedAt: noon.Add(-time.Minute), Memory: 2 << 30, PID: 103, Address: "127.0.0.1:4003", Build: build,
			},
			{
				Instance: schedule.Instance{
					ID: "c/loading", Spec: specOf("c/loading", nil), Status: schedule.Loading, Progress: 0.45, LastUsed: noon.Add(-time.Second),
				},
				Memory: 1 << 30, PID: 104, Address: "127.0.0.1:4004", Build: build,
			},
			{
				Instance: schedule.Instance{
					ID: "d/starting", Spec: specOf("d/starting", nil), Status: schedule.Starting, LastUsed: noon,
				},
				Memory: 512 << 20,
			},
			{
				Instance: schedule.Instance{
					ID: "e/leaving", Spec: specOf("e/leaving", nil), Status: schedule.Draining, Leaving: schedule.ForRoom, InUse: 1, LoadTime: time.Second, LastUsed: noon.Add(-time.Minute),
				},
				LoadedAt: noon.Add(-time.Hour), Memory: 1 << 30, PID: 105, Address: "127.0.0.1:4005", Build: build,
			},
		},
		Coming: []supervisor.Coming{
			{ID: "f/crashed", Key: "f/crashed", At: noon.Add(16 * time.Second), Why: "its engine ended unexpectedly: signal: killed"},
			{ID: "g/changed:2", Key: "g/changed", At: noon},
		},
		Failing: []supervisor.Failing{
			{Key: "f/crashed", Count: 5, Until: noon.Add(16 * time.Second), Why: "its engine ended unexpectedly: signal: killed"},
			{Key: "h/failing", Count: 4, Until: noon.Add(4 * time.Second), Why: "The model h/failing could not be loaded: unknown architecture."},
			{Key: "i/once", Count: 1, Until: noon.Add(-time.Minute), Why: "its engine ended unexpectedly: it hung"},
		},
		Waiting: map[string]int{"b/busy": 12, "c/loading": 1},
	}
}

func TestReport_JSON(t *testing.T) {
	t.Parallel()
	devices := []node.Device{{Name: schedule.CPU, Total: 64 << 30, Free: 32 << 30}, {Name: "CUDA0", IsGPU: true, Total: 24 << 30}}
	for name, o := range map[string]supervisor.Overview{"everything": everything(), "nothing": {}} {
		body, err := json.MarshalIndent(manage.DescribeOverview(o, devices, noon), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		testkit.Golden(t, "testdata/ps_"+name+".json.golden", []byte(string(body)+"\n"))
	}
}
